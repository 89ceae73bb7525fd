#include "instruction.hpp"
#include "machine.hpp"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace ptx {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

using table = std::unordered_map<std::string, handler>;

/// The first operand becomes what a function without captures makes of the others.
template <class F, class R, class... A>
handler evaluation(R (F::*)(A...) const) {
    return [](thread& t, const instruction& i) {
        [&]<std::size_t... K>(std::index_sequence<K...>) { t.set(i.at[0], F()(t.get<A>(i.at[K + 1])...)); }
        (std::index_sequence_for<A...>());
    };
}
template <class F>
handler is(F) {
    return evaluation<F>(&F::operator());
}

/// A function of floating-point numbers, rounded otherwise than to nearest.
template <int Mode, class F>
auto rounded(F f) {
    const int before = std::fegetround();
    std::fesetround(Mode);
    const volatile auto result = f();
    std::fesetround(before);
    return decltype(f())(result);
}
/// x is not moved out of the rounding that it is computed in.
template <class T>
T opaque(T x) {
    const volatile T y = x;
    return y;
}

template <class T>
T flushed(T x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T(0), x) : x;
}
/// As far off as PTX allows, 2^-22 of the value, up or down by the bits of x: nothing may rely on more.
/// Rounding has a quarter of that.
f32 approximate_exp2(f32 x) {
    const bool up = std::popcount(std::bit_cast<u32>(x)) % 2 == 1;
    return static_cast<f32>(std::exp2(f64(x)) * (1 + (up ? 0.7 : -0.7) * 0x1p-22));
}
/// The number where the other is none, and of zeros the negative one.
template <class T>
T lesser(T a, T b) {
    return a != b ? std::fmin(a, b) : std::signbit(a) ? a : b;
}

template <class To, class From>
To to_integer(From x) {
    if (std::isnan(x))
        return sizeof(From) == 8 || sizeof(To) == 8 ? To(std::make_unsigned_t<To>(1) << (sizeof(To) * 8 - 1)) : 0;
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (x >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
}

/// The f32 towards zero, whose last bit is set if it is not exact: rounding once more is as good as rounding
/// at once.
f32 to_odd(f64 x) {
    const f32 near = static_cast<f32>(x), below = std::abs(near) > std::abs(x) ? std::nextafter(near, 0.f) : near;
    return std::bit_cast<f32>(std::bit_cast<u32>(below) | (f64(below) != x));
}
/// Bits of the bf16 that is nearest, of two the even one.
u16 to_bf16(f32 x) {
    if (std::isnan(x)) return 0x7fff;
    const auto bits = std::bit_cast<u32>(x);
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Memory.

enum class space { generic, shared };
template <space Space>
char* at(thread& t, const instruction& i, const operand& address, std::size_t bytes, use u) {
    machine& m = *t.of->of;
    if constexpr (Space == space::shared)
        return m.shared_at(t, t.get<u32>(address), bytes, u);
    else
        return m.memory_at(t, t.get<u64>(address), bytes, u, i);
}
/// Into a register that may be wider.
template <class T>
void set_wide(thread& t, const operand& o, T value) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
        t.set(o, static_cast<s64>(value));
    else
        t.set(o, value);
}
template <class T, std::size_t N, space Space, use Use = use::read>
void load(thread& t, const instruction& i) {
    std::array<T, N> values;
    std::memcpy(&values, at<Space>(t, i, i.at[N], sizeof values, Use), sizeof values);
    for (std::size_t k = 0; k < N; ++k) set_wide(t, i.at[k], values[k]);
}
template <class T, std::size_t N, space Space, use Use = use::write>
void store(thread& t, const instruction& i) {
    std::array<T, N> values;
    for (std::size_t k = 0; k < N; ++k) values[k] = t.get<T>(i.at[k + 1]);
    std::memcpy(at<Space>(t, i, i.at[0], sizeof values, Use), &values, sizeof values);
}
template <class T>
void atomic_add(thread& t, const instruction& i) {
    char* to = at<space::generic>(t, i, i.at[1], sizeof(T), use::atomic_write);
    T before;
    std::memcpy(&before, to, sizeof before);
    const T after = before + t.get<T>(i.at[2]);
    std::memcpy(to, &after, sizeof after);
    t.set(i.at[0], before);
}
template <class T>
void load_acquire(thread& t, const instruction& i) {
    load<T, 1, space::generic, use::atomic_read>(t, i);
    t.of->of->acquire(t, t.get<u64>(i.at[1]));
}
template <class T>
void store_relaxed(thread& t, const instruction& i) {
    store<T, 1, space::generic, use::atomic_write>(t, i);
    t.of->of->withdraw(t.get<u64>(i.at[0]));
}
template <class T>
void store_release(thread& t, const instruction& i) {
    store<T, 1, space::generic, use::atomic_write>(t, i);
    t.of->of->publish(t, t.get<u64>(i.at[0]));
}

template <class T, space Space>
void add_memory(table& all, const std::string& place, const std::string& type) {
    all["ld" + place + type] = load<T, 1, Space>;
    all["st" + place + type] = store<T, 1, Space>;
    all["ld" + place + ".v2" + type] = load<T, 2, Space>;
    all["st" + place + ".v2" + type] = store<T, 2, Space>;
    if constexpr (sizeof(T) <= 4) {
        all["ld" + place + ".v4" + type] = load<T, 4, Space>;
        all["st" + place + ".v4" + type] = store<T, 4, Space>;
    }
}
template <class T>
void add_memory(table& all, const std::string& type) {
    for (const auto* place : {"", ".global", ".local", ".param"}) add_memory<T, space::generic>(all, place, type);
    add_memory<T, space::shared>(all, ".shared", type);
}

// Of one type.

template <class T>
void add_moves(table& all, const std::string& type) {
    all["mov" + type] = is([](T a) { return a; });
    all["selp" + type] = is([](T a, T b, bool first) { return first ? a : b; });
}
template <class T>
void add_comparisons(table& all, const std::string& type) {
    all["setp.eq" + type] = is([](T a, T b) { return a == b; });
    all["setp.ne" + type] = is([](T a, T b) { return a < b || a > b; });
    all["setp.lt" + type] = is([](T a, T b) { return a < b; });
    all["setp.le" + type] = is([](T a, T b) { return a <= b; });
    all["setp.gt" + type] = is([](T a, T b) { return a > b; });
    all["setp.ge" + type] = is([](T a, T b) { return a >= b; });
}
template <class T>
void add_bits(table& all, const std::string& type) {
    all["and" + type] = is([](T a, T b) { return T(a & b); });
    all["or" + type] = is([](T a, T b) { return T(a | b); });
    all["xor" + type] = is([](T a, T b) { return T(a ^ b); });
    all["not" + type] = is([](T a) { return T(~a); });
    all["bfi" + type] = is([](T a, T b, u32 from, u32 count) {  // the lowest `count` bits of a in b's place
        constexpr u32 bits = sizeof(T) * 8;
        from &= 0xff, count &= 0xff;
        if (from >= bits || count == 0) return b;
        const T ones = count >= bits ? T(~T(0)) : T((T(1) << count) - 1), mask = T(ones << from);
        return T((b & T(~mask)) | (T(a << from) & mask));
    });
    all["shl" + type] = is([](T a, u32 by) { return by < sizeof(T) * 8 ? T(a << by) : T(0); });
}
template <class T, class Wide>
void add_integer(table& all, const std::string& type) {
    using U = std::make_unsigned_t<T>;
    add_moves<T>(all, type);
    add_comparisons<T>(all, type);
    all["add" + type] = is([](T a, T b) { return T(U(a) + U(b)); });
    all["sub" + type] = is([](T a, T b) { return T(U(a) - U(b)); });
    all["neg" + type] = is([](T a) { return T(U(0) - U(a)); });
    all["min" + type] = is([](T a, T b) { return std::min(a, b); });
    all["max" + type] = is([](T a, T b) { return std::max(a, b); });
    all["mul.lo" + type] = is([](T a, T b) { return T(u64(U(a)) * U(b)); });
    all["mul.hi" + type] = is([](T a, T b) {  // of a division by a constant
        using wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
        return static_cast<T>((wide(a) * wide(b)) >> (sizeof(T) * 8));
    });
    all["mad.lo" + type] = is([](T a, T b, T c) { return T(u64(U(a)) * U(b) + U(c)); });
    all["mul.wide" + type] = is([](T a, T b) { return Wide(Wide(a) * Wide(b)); });
    all["mad.wide" + type] = is([](T a, T b, Wide c) { return Wide(u64(Wide(a)) * u64(Wide(b)) + u64(c)); });
    all["div" + type] = is([](T a, T b) {
        return b == 0 ? T(-1) : b == T(-1) && T(-1) < 0 ? T(U(0) - U(a)) : T(a / b);
    });
    all["rem" + type] = is([](T a, T b) { return b == 0 ? a : b == T(-1) && T(-1) < 0 ? T(0) : T(a % b); });
    all["shr" + type] =
        is([](T a, u32 by) { return T(a >> std::min<u32>(by, sizeof(T) * 8 - 1) >> (by >= sizeof(T) * 8)); });
}
template <class T>
void add_floating(table& all, const std::string& type) {
    add_moves<T>(all, type);
    add_comparisons<T>(all, type);
    add_memory<T>(all, type);
    all["setp.equ" + type] = is([](T a, T b) { return !(a < b || a > b); });
    all["setp.neu" + type] = is([](T a, T b) { return a != b; });
    all["setp.ltu" + type] = is([](T a, T b) { return !(a >= b); });
    all["setp.leu" + type] = is([](T a, T b) { return !(a > b); });
    all["setp.gtu" + type] = is([](T a, T b) { return !(a <= b); });
    all["setp.geu" + type] = is([](T a, T b) { return !(a < b); });
    all["setp.nan" + type] = is([](T a, T b) { return std::isunordered(a, b); });
    all["setp.num" + type] = is([](T a, T b) { return !std::isunordered(a, b); });
    for (const std::string rounding : {"", ".rn"}) {
        all["add" + rounding + type] = is([](T a, T b) { return a + b; });
        all["sub" + rounding + type] = is([](T a, T b) { return a - b; });
        all["mul" + rounding + type] = is([](T a, T b) { return a * b; });
    }
    all["fma.rn" + type] = is([](T a, T b, T c) { return std::fma(a, b, c); });
    all["fma.rm" + type] = is(
        [](T a, T b, T c) { return rounded<FE_DOWNWARD>([=] { return std::fma(opaque(a), opaque(b), opaque(c)); }); });
    all["add.rz" + type] = is([](T a, T b) { return rounded<FE_TOWARDZERO>([=] { return opaque(a) + opaque(b); }); });
    all["div.rn" + type] = is([](T a, T b) { return a / b; });
    all["rcp.rn" + type] = is([](T a) { return T(1) / a; });
    all["sqrt.rn" + type] = is([](T a) { return std::sqrt(a); });
    all["neg" + type] = is([](T a) { return -a; });
    all["abs" + type] = is([](T a) { return std::abs(a); });
    all["min" + type] = is([](T a, T b) { return lesser(a, b); });
    all["max" + type] = is([](T a, T b) { return T(-lesser(T(-a), T(-b))); });
    all["cvt.rzi.s32" + type] = is([](T a) { return to_integer<s32>(a); });
    all["cvt.rzi.s64" + type] = is([](T a) { return to_integer<s64>(a); });
    all["cvt.rzi.u32" + type] = is([](T a) { return to_integer<u32>(a); });
    all["cvt.rzi.u64" + type] = is([](T a) { return to_integer<u64>(a); });
}

// Of two types.

template <class From>
void add_conversions(table& all, const std::string& from) {
    all["cvt.u8" + from] = is([](From a) { return u64(u8(a)); });
    all["cvt.s8" + from] = is([](From a) { return s64(s8(a)); });
    all["cvt.u16" + from] = is([](From a) { return u16(a); });
    all["cvt.s16" + from] = is([](From a) { return s16(a); });
    all["cvt.u32" + from] = is([](From a) { return u32(a); });
    all["cvt.s32" + from] = is([](From a) { return s32(a); });
    all["cvt.u64" + from] = is([](From a) { return u64(a); });
    all["cvt.s64" + from] = is([](From a) { return s64(a); });
    all["cvt.rn.f32" + from] = is([](From a) { return f32(a); });
    all["cvt.rn.bf16" + from] = is([](From a) { return to_bf16(to_odd(static_cast<f64>(a))); });
    all["cvt.rn.f64" + from] = is([](From a) { return f64(a); });
}
template <class Half, class Whole>
void add_halves(table& all, const std::string& name) {
    all[name + ".pack"] = is([](Half low, Half high) { return Whole(Whole(high) << sizeof(Half) * 8 | low); });
    all[name + ".unpack"] = [](thread& t, const instruction& i) {
        const auto whole = t.get<Whole>(i.at[2]);
        t.set(i.at[0], Half(whole));
        t.set(i.at[1], Half(whole >> sizeof(Half) * 8));
    };
}

// Where a thread goes on.

template <machine::way Way>
void shuffle(thread& t, const instruction& i) {
    t.of->of->shuffle(t, i, Way);
}
void branch(thread& t, const instruction& i) { t.next = t.f->body.data() + i.target; }
void leave(thread& t, const instruction&) { t.leave(); }
void enter(thread& t, const instruction& i) {
    const auto& callee = *reinterpret_cast<const function*>(t.get<u64>(i.at[0]));
    const call& c = t.f->calls[i.target];
    const char* from = t.frame_memory();
    t.callers.push_back({t.f, t.next, t.registers, &c});
    t.enter(callee);
    for (std::size_t k = 0; k < c.arguments.size(); ++k)
        std::memcpy(t.frame_memory() + callee.parameters.at(k).offset, from + c.arguments[k].offset,
                    callee.parameters[k].bytes);
}
void nothing(thread&, const instruction&) {}

table everything() {
    table all;
    add_integer<u16, u32>(all, ".u16");
    add_integer<s16, s32>(all, ".s16");
    add_integer<u32, u64>(all, ".u32");
    add_integer<s32, s64>(all, ".s32");
    add_integer<u64, u64>(all, ".u64");
    add_integer<s64, s64>(all, ".s64");
    add_floating<f32>(all, ".f32");
    add_floating<f64>(all, ".f64");
    const auto without_sign = [&]<class T>(T, const std::string& bits) {
        const auto as = ".b" + bits;
        add_moves<T>(all, as);
        add_bits<T>(all, as);
        add_comparisons<T>(all, as);
        add_memory<T>(all, as);
        add_memory<T>(all, ".u" + bits);
        add_memory<std::make_signed_t<T>>(all, ".s" + bits);
        add_conversions<T>(all, ".u" + bits);
        add_conversions<std::make_signed_t<T>>(all, ".s" + bits);
    };
    without_sign(u8(), "8");
    without_sign(u16(), "16");
    without_sign(u32(), "32");
    without_sign(u64(), "64");
    add_halves<u16, u32>(all, "mov.b32");
    add_halves<u32, u64>(all, "mov.b64");

    all["mov.pred"] = is([](bool a) { return a; });
    all["not.pred"] = is([](bool a) { return !a; });
    all["and.pred"] = is([](bool a, bool b) { return a && b; });
    all["or.pred"] = is([](bool a, bool b) { return a || b; });
    all["xor.pred"] = is([](bool a, bool b) { return a != b; });

    all["cvt.f64.f32"] = is([](f32 a) { return f64(a); });
    all["cvt.rn.f32.f64"] = is([](f64 a) { return f32(a); });
    all["cvt.rn.bf16.f32"] = is([](f32 a) { return to_bf16(a); });
    all["cvt.f32.bf16"] = is([](u16 a) { return std::bit_cast<f32>(u32(a) << 16); });
    all["cvt.sat.f32.f32"] = is([](f32 a) { return a > 0 ? std::min(a, 1.f) : 0.f; });
    all["ex2.approx.f32"] = is([](f32 a) { return approximate_exp2(a); });
    all["ex2.approx.ftz.f32"] = is([](f32 a) { return flushed(approximate_exp2(flushed(a))); });
    all["rcp.approx.ftz.f64"] = is([](f64 a) {  // upper half to upper half
        const auto upper = [](f64 x) { return std::bit_cast<f64>(std::bit_cast<u64>(x) >> 32 << 32); };
        return upper(flushed(1 / flushed(upper(a))));
    });

    // An address is what it is on the host; in shared memory, how far it is from its begin.
    for (const std::string place : {"global", "local", "param"})
        all["cvta." + place + ".u64"] = all["cvta.to." + place + ".u64"] = all["mov.u64"];
    all["cvta.shared.u64"] = [](thread& t, const instruction& i) {
        t.set(i.at[0], reinterpret_cast<std::uintptr_t>(t.of->shared.data()) + t.get<u64>(i.at[1]));
    };
    all["cvta.to.shared.u64"] = [](thread& t, const instruction& i) {
        t.set(i.at[0], t.get<u64>(i.at[1]) - reinterpret_cast<std::uintptr_t>(t.of->shared.data()));
    };

    all["atom.add.relaxed.gpu.u32"] = atomic_add<u32>;
    all["atom.add.relaxed.gpu.u64"] = atomic_add<u64>;
    for (const std::string type : {".b32", ".u32"}) {
        all["ld.relaxed.gpu" + type] = load<u32, 1, space::generic, use::atomic_read>;
        all["st.relaxed.gpu" + type] = store_relaxed<u32>;
        all["ld.acquire.gpu" + type] = load_acquire<u32>;
        all["st.release.gpu" + type] = store_release<u32>;
    }
    all["bar.sync"] = [](thread& t, const instruction&) { t.of->of->arrive(t); };
    all["shfl.sync.up.b32"] = shuffle<machine::way::up>;
    all["shfl.sync.down.b32"] = shuffle<machine::way::down>;
    all["nanosleep.u32"] = nothing;
    all["bra"] = branch;
    all["call"] = enter;
    all["ret"] = leave;
    return all;
}

}  // namespace

handler handler_of(const std::string& name) {
    static const table all = everything();
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace ptx
