#include "machine.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// The interpreter that executes kernels where there is no GPU: what it computes, and that it finds what it
/// is there to find.
namespace {

const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A kernel of one array, whose address is in %rd1; %r1 is the thread's number, %r2 the block's, %rd2 the
/// address of the thread's own number.
std::string kernel(const std::string& body) {
    return head +
           ".extern .shared .align 16 .b8 asked[];\n.shared .align 4 .b8 ours[512];\n.visible .entry k(.param .u64 "
           "p)\n{\n" +
           ".local .align 4 .b8 mine[8];\n.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg "
           ".b64 %rd<9>; .reg .f64 "
           "%fd<9>;\n" +
           "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" +
           "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;\n" + body + "\nret;\n}\n";
}

struct run {
    std::vector<std::uint32_t> array;
    ptx::report report;
    ptx::traffic asked;

    run(const std::string& text, std::vector<std::uint32_t> given, std::uint32_t blocks, std::uint32_t threads,
        std::size_t shared_bytes = 0, int times = 1)
        : array(std::move(given)) {
        const auto m = ptx::parse(text);
        const std::map<void*, std::size_t> memory{{array.data(), array.size() * sizeof(std::uint32_t)}};
        ptx::machine machine(memory, 1);
        machine.counts_traffic = true;
        const void* data = array.data();
        const void* arguments[] = {&data};
        for (int i = 0; i < times; ++i)
            machine.launch(*m, m->functions.at("k"), arguments, blocks, threads, shared_bytes);
        report = machine.done;
        asked = machine.asked["k"];
    }
};
std::uint64_t races(const std::string& body, std::uint32_t blocks, std::uint32_t threads) {
    return run(kernel(body), std::vector<std::uint32_t>(256), blocks, threads).report.races;
}
std::string complaint(const std::string& body, std::uint32_t threads, std::size_t shared_bytes = 0) {
    try {
        run(kernel(body), std::vector<std::uint32_t>(256), 1, threads, shared_bytes);
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
    for (float x : {3.f, 1.f, -0.3f, 20.7f}) {
        CHECK(f("ex2.approx.ftz.f32 %f1, " + number(x)) != std::exp2(x));
        CHECK(std::abs(f("ex2.approx.ftz.f32 %f1, " + number(x)) / std::exp2(double(x)) - 1) <= 0x1p-22);
    }
    CHECK(f("ex2.approx.ftz.f32 %f1, " + number(-140)) == 0);
    CHECK(f("ex2.approx.f32 %f1, " + number(-140)) == std::exp2(-140.f));  // of few bits, so that it cannot be off
    CHECK(f("ex2.approx.f32 %f1, " + number(2000)) == std::numeric_limits<float>::infinity());
    CHECK(f("max.f32 %f1, " + number(nan) + ", " + number(2)) == 2);
    for (const auto* zeros : {", 0f00000000, 0f80000000", ", 0f80000000, 0f00000000"}) {
        CHECK(!std::signbit(f(std::string("max.f32 %f1") + zeros)));
        CHECK(std::signbit(f(std::string("min.f32 %f1") + zeros)));
    }
    CHECK(f("cvt.rn.f32.s32 %f1, -3") == -3);
    CHECK(r("cvt.rzi.s32.f32 %r3, " + number(-2.9f)) == std::uint32_t(-2));
    CHECK(r("cvt.rzi.s32.f32 %r3, " + number(1e20f)) == 0x7fffffff);
    CHECK(r("cvt.rn.bf16.f32 %rs1, " + number(1.00390625f) + "; cvt.u32.u16 %r3, %rs1") == 0x3f80);  // half: to even
    CHECK(r("cvt.rn.bf16.f32 %rs1, " + number(1.01171875f) + "; cvt.u32.u16 %r3, %rs1") == 0x3f82);
    CHECK(r("cvt.rn.bf16.s32 %rs1, 1077936129; cvt.u32.u16 %r3, %rs1") == 0x4e81);  // 2^30 + 2^22 + 1
    CHECK(r("cvt.rzi.s32.f32 %r3, " + number(nan)) == 0);
    CHECK(r("cvt.rzi.s32.f64 %r3, 0d7ff8000000000000") == 0x80000000u);
    CHECK(r("mov.pred %p1, -1; selp.b32 %r3, 1, 0, %p1") == 1);
    CHECK(r("mov.u32 %r3, 0; mov.pred %p1, -1; @%p1 mov.u32 %r3, 1; @!%p1 mov.u32 %r3, 2") == 1);
    CHECK(r("shl.b32 %r3, 1, 31") == 0x80000000u);
    CHECK(r("shl.b32 %r3, 1, 32") == 0);
    CHECK(r("shr.s32 %r3, -8, 1") == std::uint32_t(-4));
    CHECK(r("shr.s32 %r3, -8, 40") == std::uint32_t(-1));
    CHECK(r("shr.u32 %r3, 8, 40") == 0);
    CHECK(r("bfi.b32 %r3, 11, -1, 4, 8") == 0xfffff0bfu);
    CHECK(r("bfi.b32 %r3, 11, 4, 30, 8") == 0xc0000004u);  // what does not fit is left out
    CHECK(r("bfi.b32 %r3, 11, 7, 32, 8") == 7);
    CHECK(r("bfi.b32 %r3, 11, 7, 0, 0") == 7);
    CHECK(r("bfi.b32 %r3, 11, 7, 0, 32") == 11);
    CHECK(of("mov.b64 %rd3, {3, 2}; bfi.b64 %rd3, %rd3, 1, 1, 63; st.global.u64 [%rd1], %rd3;") ==
          std::vector<std::uint32_t>{7, 4});
    CHECK(r("div.s32 %r3, -7, 2") == std::uint32_t(-3));
    CHECK(r("rem.s32 %r3, -7, 2") == std::uint32_t(-1));
    CHECK(r("div.s32 %r3, -2147483648, -1") == 0x80000000u);
    CHECK(r("mul.lo.s32 %r3, -7, 2") == std::uint32_t(-14));
    CHECK(r("mul.hi.s32 %r3, -7, 2") == std::uint32_t(-1));
    CHECK(r("mul.hi.s32 %r3, 100, 1431655766") == 33);  // 100 / 3
    CHECK(r("mul.hi.u32 %r3, 4294967295, 16") == 15);
    CHECK(r("mov.b64 %rd3, {5, 6}; mov.b64 {%r4, %r3}, %rd3") == 6);

    const auto wide = of("mul.wide.s32 %rd3, -2, 3; st.global.u64 [%rd1], %rd3;");
    CHECK(wide == std::vector<std::uint32_t>{std::uint32_t(-6), 0xffffffffu});
    const auto approximate = of("rcp.approx.ftz.f64 %fd1, 0d4008000000000000; st.global.f64 [%rd1], %fd1;");
    CHECK(approximate == std::vector<std::uint32_t>{0, std::uint32_t(std::bit_cast<std::uint64_t>(1. / 3) >> 32)});
    const auto flushed = of("rcp.approx.ftz.f64 %fd1, 0d0008000000000000; st.global.f64 [%rd1], %fd1;");
    CHECK(flushed == std::vector<std::uint32_t>{0, 0x7ff00000});

    const auto holds = [&](const std::string& comparison, float a, float b) {
        return r("setp." + comparison + ".f32 %p1, " + number(a) + ", " + number(b) + "; selp.b32 %r3, 1, 0, %p1") == 1;
    };
    for (const auto* ordered : {"eq", "ne", "lt", "le", "gt", "ge", "num"}) CHECK(!holds(ordered, nan, 1));
    for (const auto* unordered : {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"}) CHECK(holds(unordered, nan, 1));
    CHECK(holds("ne", 1, 2));
    CHECK(holds("leu", 1, 2));
    CHECK(!holds("leu", 2, 1));
}

TEST_CASE("ptx: lanes of a warp shuffle their values up and down") {
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
    CHECK(says(complaint(sum("-1"), 48), "from a lane that takes no part"));
    CHECK(says(
        complaint("setp.eq.u32 %p1, %r1, 0; selp.b32 %r3, 3, -1, %p1; shfl.sync.down.b32 %r4, %r1, 1, 31, %r3;", 2),
        "waits for threads that do not come"));
    // Halves of a warp, whose last lanes keep their own: 16 for the first, 32 for the second.
    const auto halves = run(kernel("shfl.sync.down.b32 %r3, %r1, 1, 4127, -1; st.global.u32 [%rd2], %r3;"),
                            std::vector<std::uint32_t>(32), 1, 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(halves.array[i] == (i % 16 == 15 ? i : i + 1));
    // Up by three, in a warp and in its quarters, whose first lanes keep their own.
    const auto up = [](int bounds) {
        return run(
            kernel("shfl.sync.up.b32 %r3, %r1, 3, " + std::to_string(bounds) + ", -1; st.global.u32 [%rd2], %r3;"),
            std::vector<std::uint32_t>(32), 1, 32);
    };
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(up(0).array[i] == (i < 3 ? i : i - 3));
        CHECK(up(24 << 8).array[i] == (i % 8 < 3 ? i : i - 3));
    }
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
    const std::string all_read = "ld.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r1, 9;";
    CHECK(races(all_read + "@%p1 st.global.u32 [%rd1], %r1;", 1, 64) > 0);
    CHECK(races(all_read + "bar.sync 0; @%p1 st.global.u32 [%rd1], %r1;", 1, 64) == 0);
    CHECK(races(all_read + "bar.sync 0; @%p1 st.global.u32 [%rd1], %r1;", 2, 64) > 0);
    CHECK(races(own + "bar.sync 0;" + first, 9, 64) == 0);  // one after the other in the same memory
    // The second thread reads after the first, and writes.
    CHECK(races("setp.ne.u32 %p1, %r1, 0; @%p1 bra second; ld.global.u32 %r3, [%rd1]; st.relaxed.gpu.b32 [%rd1+512], "
                "1; ret;\n"
                "second: ld.relaxed.gpu.b32 %r3, [%rd1+512]; setp.eq.u32 %p2, %r3, 0; @%p2 bra second;"
                "ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1], %r3;",
                1, 2) == 1);
}

TEST_CASE("ptx: a launch follows the one before it") {
    // Every time another thread writes an element.
    const std::string other =
        "ld.global.u32 %r3, [%rd1+512]; xor.b32 %r4, %r1, %r3; mul.wide.u32 %rd3, %r4, 4;"
        "add.s64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r1; bar.sync 0; setp.ne.u32 %p1, %r1, 0;"
        "@%p1 ret; add.u32 %r3, %r3, 1; st.global.u32 [%rd1+512], %r3;";
    const auto done = run(kernel(other), std::vector<std::uint32_t>(256), 1, 64, 0, 3);
    CHECK(done.array[128] == 3);
    CHECK(done.report.races == 0);
    CHECK(run(kernel(own + "bar.sync 0;" + first), {0}, 2, 64, 0, 3).report.races == 0);
}

TEST_CASE("ptx: what was released by the launch before says nothing of this one") {
    const auto before = ptx::parse(kernel("st.global.u32 [%rd1], 1; bar.sync 0; st.release.gpu.b32 [%rd1+4], 1;"));
    // Block 1 reads after block 0 has written, but acquires what stands there from before.
    const auto after =
        ptx::parse(kernel("setp.ne.u32 %p1, %r2, 0; @%p1 bra reader;"
                          "st.global.u32 [%rd1], 2; st.relaxed.gpu.b32 [%rd1+8], 1; ret;\n"
                          "reader: ld.relaxed.gpu.b32 %r3, [%rd1+8]; setp.eq.u32 %p2, %r3, 0; @%p2 bra reader;"
                          "ld.acquire.gpu.b32 %r3, [%rd1+4]; ld.global.u32 %r4, [%rd1];"));
    std::vector<std::uint32_t> array(3);
    const std::map<void*, std::size_t> memory{{array.data(), array.size() * sizeof(std::uint32_t)}};
    ptx::machine machine(memory, 1);
    const void* data = array.data();
    const void* arguments[] = {&data};
    machine.launch(*before, before->functions.at("k"), arguments, 1, 1, 0);
    CHECK(machine.done.races == 0);
    machine.launch(*after, after->functions.at("k"), arguments, 2, 1, 0);
    CHECK(machine.done.races == 1);
}

TEST_CASE("ptx: memory begins as what nobody has written") {
    const auto begins = [](const std::string& load) {
        return run(kernel(load + "; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r3;"
                                 "st.shared.u32 [ours], 5; st.local.u32 [mine], 5;"),
                   std::vector<std::uint32_t>(5), 5, 1)
            .array;
    };
    const std::vector<std::uint32_t> nothing(5, 0xffffffffu);
    CHECK(begins("ld.shared.u32 %r3, [ours]") == nothing);
    CHECK(begins("ld.local.u32 %r3, [mine]") == nothing);
}

TEST_CASE("ptx: atomic accesses do not race with each other, but with others") {
    const std::string add = "atom.add.relaxed.gpu.u64 %rd3, [%rd1], 1;";
    const auto counted = run(kernel(add), std::vector<std::uint32_t>(2), 5, 64);
    CHECK(counted.array[0] == 5 * 64);
    CHECK(counted.report.races == 0);
    CHECK(races(add + "ld.global.u64 %rd3, [%rd1];", 1, 2) > 0);
    CHECK(races("setp.ne.u32 %p1, %r2, 0; @%p1 bra other; st.global.u64 [%rd1], 0; ret;\nother:" + add, 2, 1) > 0);
}

/// Block 0 writes what block 1 reads once the flag behind it is set.
std::string between(const std::string& before, const std::string& publish, const std::string& acquire) {
    return "setp.ne.u32 %p1, %r2, 0; @%p1 bra reader;\n st.global.u32 [%rd2], %r1;" + before +
           "setp.ne.u32 %p2, %r1, 0; @%p2 bra end;\n" + publish + " [%rd1+512], 1; bra end;\n" + "reader: " + acquire +
           " %r3, [%rd1+512]; setp.eq.u32 %p2, %r3, 0; @%p2 bra reader;\n" + "ld.global.u32 %r4, [%rd2];\nend:";
}

const std::string release = "st.release.gpu.b32", acquire = "ld.acquire.gpu.b32";

TEST_CASE("ptx: blocks wait for each other by what is released and acquired") {
    CHECK(races(between("bar.sync 0;", release, acquire), 2, 32) == 0);
    CHECK(races(between("", release, acquire), 2, 32) > 0);
    for (const std::string weak : {"relaxed.gpu", "global"}) {
        CHECK(races(between("bar.sync 0;", "st." + weak + ".b32", acquire), 2, 32) > 0);
        CHECK(races(between("bar.sync 0;", release, "ld." + weak + ".b32"), 2, 32) > 0);
    }
    CHECK(races("st.global.u32 [%rd2], %r1;", 2, 32) > 0);
    // Block 1 reads after block 0, and writes: having waited for it, and not.
    const auto reads_and_writes = [](const std::string& set, const std::string& look) {
        return "setp.ne.u32 %p1, %r2, 0; @%p1 bra second; ld.global.u32 %r3, [%rd1]; bar.sync 0; " + set +
               " [%rd1+512], 1; ret;\nsecond: " + look + " %r3, [%rd1+512]; setp.eq.u32 %p2, %r3, 0; @%p2 bra second;" +
               "ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1], %r3;";
    };
    CHECK(races(reads_and_writes(release, acquire), 2, 1) == 0);
    CHECK(races(reads_and_writes("st.relaxed.gpu.b32", "ld.relaxed.gpu.b32"), 2, 1) == 1);
}

/// Blocks 0, 1 and 2: each but the first waits, by one thread, for the flag of the one before it, then sets
/// its own, while `work` is done between.
std::string in_turn(const std::string& after_waiting, const std::string& work, const std::string& before_release) {
    return "setp.ne.u32 %p1, %r1, 0; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd3, %rd1;\n"
           "@%p1 bra waited; setp.eq.u32 %p2, %r2, 0; @%p2 bra waited;\n"
           "wait: ld.acquire.gpu.b32 %r3, [%rd3+508]; setp.eq.u32 %p2, %r3, 0; @%p2 bra wait;\nwaited:" +
           after_waiting + work + before_release + "@%p1 ret; st.release.gpu.b32 [%rd3+512], 1;";
}
TEST_CASE("ptx: what one thread has acquired, others know after a barrier, and pass on") {
    const std::string bar = "bar.sync 0;";
    const std::string add = "ld.global.u32 %r4, [%rd2]; add.u32 %r4, %r4, 1; st.global.u32 [%rd2], %r4;";
    const std::string ends = "setp.eq.u32 %p3, %r2, 1; @%p3 bra over;" + add + "\nover:";  // of blocks 0 and 2
    CHECK(races(in_turn(bar, add, bar), 3, 32) == 0);
    CHECK(races(in_turn(bar, ends, bar), 3, 32) == 0);
    CHECK(races(in_turn("", add, bar), 3, 32) > 0);
    CHECK(races(in_turn(bar, add, ""), 3, 32) > 0);
    // Blocks 3, 4 and 5 come after others in the same place, and have acquired nothing.
    CHECK(
        races("setp.gt.u32 %p1, %r2, 2; @%p1 bra late; setp.ne.u32 %p1, %r2, 0; @%p1 bra reader;"
              "st.global.u32 [%rd1], 1; bar.sync 0; st.release.gpu.b32 [%rd1+512], 1; ret;\n"
              "reader: ld.acquire.gpu.b32 %r3, [%rd1+512]; setp.eq.u32 %p2, %r3, 0; @%p2 bra reader; bar.sync 0; ret;\n"
              "late: bar.sync 0; ld.global.u32 %r4, [%rd1];",
              6, 1) == 3);
    // Only what came before the release: here block 0 goes on with it.
    CHECK(races("setp.ne.u32 %p1, %r2, 0; @%p1 bra reader; bar.sync 0; st.release.gpu.b32 [%rd1+512], 1;"
                "st.global.u32 [%rd1+4], 1; bra end;\n"
                "reader: ld.acquire.gpu.b32 %r3, [%rd1+512]; setp.eq.u32 %p2, %r3, 0; @%p2 bra reader;\n"
                "ld.global.u32 %r4, [%rd1+4];\nend:",
                2, 1) > 0);
    // Block 2 acquires what block 1 has stored over the flag that block 0 released, but did not release
    // itself.
    CHECK(races("setp.eq.u32 %p1, %r2, 1; @%p1 bra second; setp.eq.u32 %p1, %r2, 2; @%p1 bra third;\n"
                "st.global.u32 [%rd1], 7; bar.sync 0; st.release.gpu.b32 [%rd1+512], 1; ret;\n"
                "second: ld.relaxed.gpu.b32 %r3, [%rd1+512]; setp.ne.u32 %p2, %r3, 1; @%p2 bra second;"
                "st.relaxed.gpu.b32 [%rd1+512], 2; ret;\n"
                "third: ld.acquire.gpu.b32 %r3, [%rd1+512]; setp.ne.u32 %p2, %r3, 2; @%p2 bra third; ld.global.u32 "
                "%r4, [%rd1];",
                3, 1) == 1);
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
    CHECK(complaint("st.shared.u32 [asked+60], %r3;", 1, 64) == "none");
    CHECK(says(complaint("st.shared.u32 [asked+64], %r3;", 1, 64), "outside of shared memory"));
    CHECK(complaint("st.local.u32 [mine+4], %r3;", 1) == "none");
    for (const auto* beyond : {"8", "-12", "4000"})
        CHECK(says(complaint("st.local.u32 [mine+" + std::string(beyond) + "], %r3;", 1), "outside of local memory"));
}

TEST_CASE("ptx: a barrier that not all threads reach, or not the same one, is an error") {
    const std::string odd = "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;";
    CHECK(complaint("bar.sync 0;", 64) == "none");
    const auto words = complaint(odd + "@%p1 ret; bar.sync 0;", 64);
    CHECK((says(words, "where others wait at a barrier") || says(words, "where other threads have ended")));
    CHECK(says(complaint(odd + "@%p1 bar.sync 0; @!%p1 bar.sync 0;", 64), "at another one"));
    CHECK(says(complaint("bar.sync 1;", 64), "a barrier other than 0 of all threads"));
    CHECK(says(complaint("bar.sync 0, 32;", 64), "a barrier other than 0 of all threads"));
    const auto from_two_places = [&](const std::string& other) {
        return head + ".func waits()\n{\nbar.sync 0; ret;\n}\n.visible .entry k(.param .u64 p)\n{\n" +
               ".reg .pred %p<2>; .reg .b32 %r<9>;\nmov.u32 %r1, %tid.x;" + odd + other + "call.uni waits; ret;\n}\n";
    };
    CHECK_NOTHROW(run(from_two_places(""), {0}, 1, 64));
    CHECK_THROWS_WITH_AS(run(from_two_places("@%p1 call.uni waits; @%p1 ret;"), {0}, 1, 64),
                         doctest::Contains("at another one"), ptx::error);
}

TEST_CASE("ptx: a function that calls itself for ever is an error, and one that ends without ret returns") {
    const auto text = [](const std::string& body) {
        return head + ".func again()\n;\n.func again()\n{\n" + body +
               "}\n.visible .entry k(.param .u64 p)\n{\ncall.uni again;\n}\n";
    };
    CHECK_THROWS_WITH_AS(run(text("call.uni again;"), {0}, 1, 1), doctest::Contains("the stack is full, at again"),
                         ptx::error);
    CHECK_NOTHROW(run(text(""), {0}, 1, 1));
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
               "line 13, at ';': unknown instruction wgmma.fence.sync.aligned"));
    CHECK(says(words(kernel("mov.u32 %r3, %clock;")), "unknown: %clock"));
    CHECK(says(words(kernel("mov.u32 %r9, 1;")), "unknown: %r9"));
    CHECK(says(words(kernel("bra nowhere;")), "no label nowhere"));
    CHECK(says(words(head + ".visible .entry k(.param .u64"), "it ends too early"));
    CHECK(says(words(head + "nonsense"), "an unknown declaration"));
    CHECK(says(words(head + ".shared .align 4 .b7 x[4];"), "expected a type"));
    CHECK(says(words(head + ".shared .align 4 .b8 x[y];"), "expected a number"));
    CHECK(says(words(kernel("call.uni none, (x);")), "unknown: none"));
    CHECK(says(words(kernel(".loc 1 2 3")), "at '.loc': an unknown directive"));
    CHECK(says(words(kernel("mov.f32 %f1, 1.5;")), "expected a number"));
    CHECK(says(words(head + ".global .align 4 .b8 x[2] = {1, 2, 3};"), "one too many"));
    CHECK(words(head + ".global .align 4 .b8 x[8] = {1, 2, 3};\n.global .align 8 .u64 y = x;") == "none");
    CHECK(words("") == "none");
}

/// Leaves in %rd3 the address of a word of each thread, `stride` words apart.
std::string words(int stride) {
    return "mul.lo.u32 %r3, %r1, " + std::to_string(stride) + "; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd1, %rd3; ";
}
ptx::traffic asked(const std::string& body, std::uint32_t threads = 32, std::uint32_t blocks = 1) {
    return run(kernel(body), std::vector<std::uint32_t>(2048), blocks, threads, 8192).asked;
}

TEST_CASE("ptx: an instruction of a warp asks for each sector of 32 bytes once") {
    const auto read = [](const std::string& body, std::uint32_t threads = 32, std::uint32_t blocks = 1) {
        return asked(body + "ld.global.u32 %r4, [%rd3];", threads, blocks).read;
    };
    // The array begins where the host put it: at least one sector more than words that lie in a row fill.
    const auto row = read(words(1));
    CHECK((row == 128 || row == 160));
    CHECK(read(words(0)) == 32);
    CHECK(read(words(8)) == 32 * 32);
    CHECK(read(words(8), 20) == 20 * 32);
    CHECK(read(words(8), 40, 3) == 3 * 40 * 32);
    // As often as it is executed, also by few of the lanes.
    CHECK(read(words(8) + "ld.global.u32 %r4, [%rd3]; setp.lt.u32 %p1, %r1, 3; @%p1 ld.global.u32 %r4, [%rd3];") ==
          (32 + 3 + 32) * 32);
    const auto wide = asked(words(8) + "st.global.v2.u32 [%rd3], {%r1, %r1};");
    CHECK(wide.written == 32 * 32);
    CHECK(wide.read == 0);
}

TEST_CASE("ptx: of sectors, those that a launch asks for the first time are counted apart") {
    const auto t = asked(words(8) + "ld.global.u32 %r4, [%rd3]; ld.global.u32 %r5, [%rd3]; st.global.u32 [%rd3], %r4;");
    CHECK(t.read == 2 * 32 * 32);
    CHECK(t.first_read == 32 * 32);
    CHECK(t.written == 32 * 32);
    CHECK(t.first_written == 32 * 32);
}

TEST_CASE("ptx: shared memory takes a turn for each word of the bank that is asked most") {
    const auto turns = [](int stride, const std::string& load) {
        const auto t = asked("mul.lo.u32 %r3, %r1, " + std::to_string(4 * stride) +
                             "; mov.u32 %r4, asked; add.u32 %r3, %r3, %r4; " + load);
        return std::pair(t.turns, t.least_turns);
    };
    const std::string word = "ld.shared.u32 %r4, [%r3];";
    CHECK(turns(0, word) == std::pair<std::uint64_t, std::uint64_t>(1, 1));
    CHECK(turns(1, word) == std::pair<std::uint64_t, std::uint64_t>(1, 1));
    CHECK(turns(2, word) == std::pair<std::uint64_t, std::uint64_t>(2, 1));
    CHECK(turns(32, word) == std::pair<std::uint64_t, std::uint64_t>(32, 1));
    CHECK(turns(33, word) == std::pair<std::uint64_t, std::uint64_t>(1, 1));
    CHECK(turns(2, "ld.shared.v2.u32 {%r4, %r5}, [%r3];") == std::pair<std::uint64_t, std::uint64_t>(2, 2));
    CHECK(turns(4, "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];") == std::pair<std::uint64_t, std::uint64_t>(4, 4));
    CHECK(turns(8, "ld.shared.v2.u32 {%r4, %r5}, [%r3];") == std::pair<std::uint64_t, std::uint64_t>(8, 2));
}

}  // namespace
