#include "machine.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// The interpreter that executes kernels where there is no GPU: what it computes, and that it finds what it is there to find.
namespace {

const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A kernel of one array, whose address is in %rd1; %r1 is the thread's number, %r2 the block's, %rd2 the address of the thread's own number.
std::string kernel(const std::string& body) {
    return head + ".shared .align 4 .b8 ours[512];\n.visible .entry k(.param .u64 p)\n{\n" +
           ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 "
           "%fd<9>;\n" +
           "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" +
           "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;\n" + body + "\nret;\n}\n";
}

struct run {
    std::vector<std::uint32_t> array;
    ptx::report report;

    run(const std::string& text, std::vector<std::uint32_t> given, std::uint32_t blocks, std::uint32_t threads)
        : array(std::move(given)) {
        const auto m = ptx::parse(text);
        const std::map<void*, std::size_t> memory{{array.data(), array.size() * sizeof(std::uint32_t)}};
        ptx::machine machine(memory, 1);
        const void* data = array.data();
        const void* arguments[] = {&data};
        machine.launch(*m, m->functions.at("k"), arguments, blocks, threads, 0);
        report = machine.done;
    }
};
std::uint64_t races(const std::string& body, std::uint32_t blocks, std::uint32_t threads) {
    return run(kernel(body), std::vector<std::uint32_t>(256), blocks, threads).report.races;
}
std::string complaint(const std::string& body, std::uint32_t threads) {
    try {
        run(kernel(body), std::vector<std::uint32_t>(256), 1, threads);
    } catch (const ptx::error& e) {
        return e.what();
    }
    return "none";
}
bool says(const std::string& words, const std::string& what) { return words.find(what) != words.npos; }

TEST_CASE("ptx: threads of all blocks execute a kernel") {
    const auto done = run(kernel("mad.lo.u32 %r3, %r2, 32, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd1, %rd3;"
                                 "ld.global.u32 %r4, [%rd3]; add.u32 %r4, %r4, %r3; st.global.u32 [%rd3], %r4;"),
                          std::vector<std::uint32_t>(160, 7), 5, 32);
    for (std::uint32_t i = 0; i < 160; ++i) CHECK(done.array[i] == 7 + i);
    CHECK(done.report.races == 0);
    CHECK(done.report.launches == 1);
    CHECK(done.report.instructions == 160u * 12);
}

TEST_CASE("ptx: calls go through addresses that stand in memory, with arguments, a stack and results") {
    const auto text =
        head +
        ".func (.param .b32 result) twice(.param .b32 a)\n;\n"
        ".global .align 8 .u64 address = twice;\n"
        ".func (.param .b32 result) twice(.param .b32 a)\n{\n.local .align 4 .b8 mine[8];\n.reg .b32 %r<3>;\n"
        "ld.param.b32 %r1, [a]; st.local.u32 [mine+4], %r1; ld.local.u32 %r2, [mine+4];\n"
        "add.u32 %r2, %r2, %r1; st.param.b32 [result], %r2; ret;\n}\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
        "ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [address]; mov.u32 %r1, 21;\n"
        "{ .param .b32 x; st.param.b32 [x], %r1; .param .b32 y;\n"
        "proto : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "call (y), %rd2, (x), proto; ld.param.b32 %r2, [y]; }\n"
        "st.global.u32 [%rd1], %r2; ret;\n}\n";
    CHECK(run(text, {0}, 1, 1).array[0] == 42);
}

TEST_CASE("ptx: instructions compute what PTX says") {
    const auto of = [](const std::string& body) { return run(kernel(body), {0, 0}, 1, 1).array; };
    const auto low = [&](const std::string& body) { return of(body)[0]; };
    const auto number = [](float x) {
        char text[16];
        std::snprintf(text, sizeof text, "0f%08X", std::bit_cast<std::uint32_t>(x));
        return std::string(text);
    };
    const auto f = [&](const std::string& instruction) {
        return std::bit_cast<float>(low(instruction + "; st.global.f32 [%rd1], %f1;"));
    };
    const auto r = [&](const std::string& instruction) { return low(instruction + "; st.global.u32 [%rd1], %r3;"); };
    const float tiny = 1e-30f, next = std::nextafter(1.f, 0.f), nan = std::nanf("");

    CHECK(f("fma.rn.f32 %f1, " + number(2) + ", " + number(3) + ", " + number(4)) == 10);
    CHECK(f("add.rn.f32 %f1, " + number(1) + ", " + number(-tiny)) == 1);
    CHECK(f("add.rz.f32 %f1, " + number(1) + ", " + number(-tiny)) == next);
    CHECK(f("fma.rm.f32 %f1, " + number(1) + ", " + number(1) + ", " + number(-tiny)) == next);
    CHECK(f("cvt.sat.f32.f32 %f1, " + number(7)) == 1);
    CHECK(f("cvt.sat.f32.f32 %f1, " + number(nan)) == 0);
    CHECK(f("ex2.approx.ftz.f32 %f1, " + number(3)) == 8);
    CHECK(f("ex2.approx.ftz.f32 %f1, " + number(-140)) == 0);
    CHECK(f("ex2.approx.f32 %f1, " + number(-140)) == std::exp2(-140.f));
    CHECK(f("max.f32 %f1, " + number(nan) + ", " + number(2)) == 2);
    CHECK(f("cvt.rn.f32.s32 %f1, -3") == -3);
    CHECK(r("cvt.rzi.s32.f32 %r3, " + number(-2.9f)) == std::uint32_t(-2));
    CHECK(r("cvt.rzi.s32.f32 %r3, " + number(1e20f)) == 0x7fffffff);
    CHECK(r("cvt.rn.bf16.f32 %rs1, " + number(1.00390625f) + "; cvt.u32.u16 %r3, %rs1") == 0x3f80);  // half: to even
    CHECK(r("cvt.rn.bf16.f32 %rs1, " + number(1.01171875f) + "; cvt.u32.u16 %r3, %rs1") == 0x3f82);
    CHECK(r("shl.b32 %r3, 1, 31") == 0x80000000u);
    CHECK(r("shl.b32 %r3, 1, 32") == 0);
    CHECK(r("shr.s32 %r3, -8, 1") == std::uint32_t(-4));
    CHECK(r("shr.s32 %r3, -8, 40") == std::uint32_t(-1));
    CHECK(r("shr.u32 %r3, 8, 40") == 0);
    CHECK(r("div.s32 %r3, -7, 2") == std::uint32_t(-3));
    CHECK(r("rem.s32 %r3, -7, 2") == std::uint32_t(-1));
    CHECK(r("mul.lo.s32 %r3, -7, 2") == std::uint32_t(-14));
    CHECK(r("mov.b64 %rd3, {5, 6}; mov.b64 {%r4, %r3}, %rd3") == 6);

    const auto wide = of("mul.wide.s32 %rd3, -2, 3; st.global.u64 [%rd1], %rd3;");
    CHECK(wide == std::vector<std::uint32_t>{std::uint32_t(-6), 0xffffffffu});
    const auto approximate = of("rcp.approx.ftz.f64 %fd1, 0d4008000000000000; st.global.f64 [%rd1], %fd1;");
    CHECK(approximate == std::vector<std::uint32_t>{0, std::uint32_t(std::bit_cast<std::uint64_t>(1. / 3) >> 32)});

    const auto holds = [&](const std::string& comparison, float a, float b) {
        return r("setp." + comparison + ".f32 %p1, " + number(a) + ", " + number(b) + "; selp.b32 %r3, 1, 0, %p1") == 1;
    };
    for (const auto* ordered : {"eq", "ne", "lt", "le", "gt", "ge", "num"}) CHECK(!holds(ordered, nan, 1));
    for (const auto* unordered : {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"}) CHECK(holds(unordered, nan, 1));
    CHECK(holds("ne", 1, 2));
    CHECK(holds("leu", 1, 2));
    CHECK(!holds("leu", 2, 1));
}

TEST_CASE("ptx: lanes of a warp shuffle their values down") {
    const auto sum = [](const std::string& mask) {
        std::string body = "add.u32 %r3, %r1, 1;";
        for (int by = 16; by > 0; by /= 2)
            body += "shfl.sync.down.b32 %r4, %r3, " + std::to_string(by) + ", 31, " + mask + "; add.u32 %r3, %r3, %r4;";
        return body + "setp.ne.u32 %p2, %r1, 0; @%p2 ret; st.global.u32 [%rd1], %r3;";
    };
    CHECK(run(kernel(sum("-1")), {0}, 1, 32).array[0] == 32 * 33 / 2);
    CHECK(says(complaint(sum("0xffff"), 32), "a shuffle without the lane that executes it"));
    CHECK(says(complaint("setp.gt.u32 %p1, %r1, 15; @%p1 ret;" + sum("0xffff"), 32), "from a lane that takes no part"));
    CHECK(says(complaint("setp.gt.u32 %p1, %r1, 15; @%p1 ret;" + sum("-1"), 32), "waits for threads that do not come"));
}

const std::string own =
    "mul.wide.u32 %rd3, %r1, 4; mov.b64 %rd4, ours; add.s64 %rd4, %rd4, %rd3; st.shared.u32 [%rd4], %r1;";
const std::string first = "ld.shared.u32 %r3, [ours];";

TEST_CASE("ptx: threads of a block that have not waited for each other race") {
    CHECK(races(own, 3, 64) == 0);
    CHECK(races(own + first, 3, 64) > 0);
    CHECK(races(own + "bar.sync 0;" + first, 3, 64) == 0);
    CHECK(races(own + "bar.sync 0;" + first + own, 3, 64) > 0);
    CHECK(races(own + "bar.sync 0;" + first + "bar.sync 0;" + own, 3, 64) == 0);
    CHECK(races("st.global.u32 [%rd1], %r1;", 1, 2) > 0);
    CHECK(races("cvt.u64.u32 %rd3, %r1; add.s64 %rd3, %rd1, %rd3; st.global.u8 [%rd3], %rs1;", 1, 64) == 0);
    CHECK(races("ld.global.u32 %r3, [%rd1];", 3, 64) == 0);
    CHECK(races("ld.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r1, 9; @%p1 st.global.u32 [%rd1], %r1;", 1, 64) > 0);
}

/// Block 0 writes what block 1 reads once the flag behind it is set.
std::string between(const std::string& before, const std::string& publish, const std::string& acquire) {
    return "setp.ne.u32 %p1, %r2, 0; @%p1 bra reader;\n st.global.u32 [%rd2], %r1;" + before +
           "setp.ne.u32 %p2, %r1, 0; @%p2 bra end;\n" + publish + " [%rd1+512], 1; bra end;\n" + "reader: " + acquire +
           " %r3, [%rd1+512]; setp.eq.u32 %p2, %r3, 0; @%p2 bra reader;\n" + "ld.global.u32 %r4, [%rd2];\nend:";
}

TEST_CASE("ptx: blocks wait for each other by what is published and acquired") {
    const std::string release = "st.release.gpu.b32", acquire = "ld.acquire.gpu.b32";
    CHECK(races(between("bar.sync 0;", release, acquire), 2, 32) == 0);
    CHECK(races(between("", release, acquire), 2, 32) > 0);
    CHECK(races(between("bar.sync 0;", "st.global.b32", acquire), 2, 32) > 0);
    CHECK(races(between("bar.sync 0;", release, "ld.global.b32"), 2, 32) > 0);
    CHECK(races("st.global.u32 [%rd2], %r1;", 2, 32) > 0);
}

TEST_CASE("ptx: an access outside of an allocation, or a misaligned one, is an error with its thread") {
    CHECK(complaint("ld.global.u32 %r3, [%rd1+1020];", 1) == "none");
    CHECK(complaint("ld.global.u32 %r3, [%rd1+1024];", 1) ==
          "k, block 0, thread 0: ld.global.u32 %r3 , [ %rd1 + 1024 ]: there is nothing of 4 bytes at this address");
    CHECK(says(complaint("st.u32 [%rd1+-4], %r3;", 1), "there is nothing"));
    CHECK(says(complaint("ld.global.u32 %r3, [%rd1+2];", 1), "misaligned"));
    CHECK(says(complaint("ld.global.v2.u32 {%r3, %r4}, [%rd1+4];", 1), "misaligned"));
    CHECK(says(complaint("ld.shared.u32 %r3, [ours+512];", 1), "outside of shared memory"));
    CHECK(says(complaint("cvta.shared.u64 %rd3, ours; ld.u32 %r3, [%rd3+512];", 1), "outside of shared memory"));
    CHECK(complaint("cvta.shared.u64 %rd3, ours; ld.u32 %r3, [%rd3+508];", 1) == "none");
}

TEST_CASE("ptx: a barrier that not all threads reach, or not the same one, is an error") {
    const std::string odd = "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;";
    CHECK(complaint("bar.sync 0;", 64) == "none");
    const auto words = complaint(odd + "@%p1 ret; bar.sync 0;", 64);
    CHECK((says(words, "where others wait at a barrier") || says(words, "where other threads have ended")));
    CHECK(says(complaint(odd + "@%p1 bar.sync 0; @!%p1 bar.sync 0;", 64), "at another one"));
}

TEST_CASE("ptx: what is not known is an error with its line") {
    const auto words = [](const std::string& text) -> std::string {
        try {
            ptx::parse(text);
        } catch (const ptx::error& e) {
            return e.what();
        }
        return "none";
    };
    CHECK(says(words(kernel("\nwgmma.fence.sync.aligned;")),
               "line 11, at ';': unknown instruction wgmma.fence.sync.aligned"));
    CHECK(says(words(kernel("mov.u32 %r3, %clock;")), "unknown: %clock"));
    CHECK(says(words(kernel("mov.u32 %r9, 1;")), "unknown: %r9"));
    CHECK(says(words(kernel("bra nowhere;")), "no label nowhere"));
    CHECK(says(words(head + ".visible .entry k(.param .u64"), "it ends too early"));
    CHECK(says(words(head + "nonsense"), "an unknown declaration"));
    CHECK(says(words(head + ".shared .align 4 .b7 x[4];"), "expected a type"));
    CHECK(says(words(head + ".shared .align 4 .b8 x[y];"), "expected a number"));
    CHECK(says(words(kernel("call.uni none, (x);")), "unknown: none"));
    CHECK(words("") == "none");
}

}  // namespace
