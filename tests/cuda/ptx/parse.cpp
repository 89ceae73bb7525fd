#include "instruction.hpp"
#include "module.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace ptx {
namespace {

struct token {
    std::string_view text;
    int line;
};

/// Names with their dots and signs of a register, numbers, strings; any other character by itself.
std::vector<token> tokens_of(std::string_view text) {
    std::vector<token> all;
    int line = 1;
    const auto of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_$%.", c); };
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        std::size_t end = at + 1;
        if (c == '/' && text.substr(at, 2) == "//") {
            at = std::min(text.find('\n', at), text.size());
            continue;
        }
        if (std::isspace(static_cast<unsigned char>(c))) {
            line += c == '\n';
            ++at;
            continue;
        }
        if (c == '"')
            end = std::min(text.find('"', end), text.size() - 1) + 1;
        else if (of_name(c))
            while (end < text.size() && of_name(text[end])) ++end;
        all.push_back({text.substr(at, end - at), line});
        at = end;
    }
    return all;
}

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

class parser {
public:
    explicit parser(const std::string& text) : tokens_(tokens_of(text)) {}

    std::unique_ptr<module> all() {
        while (here_ < tokens_.size()) declaration();
        return std::move(module_);
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        const auto& at = tokens_.at(std::min(here_, tokens_.size() - 1));
        throw error("PTX, line " + std::to_string(at.line) + ", at '" + std::string(at.text) + "': " + what);
    }
    std::string_view peek() const { return here_ < tokens_.size() ? tokens_[here_].text : ""; }
    std::string_view next() {
        if (here_ >= tokens_.size()) fail("it ends too early");
        return tokens_[here_++].text;
    }
    bool take(std::string_view text) {
        if (peek() != text) return false;
        ++here_;
        return true;
    }
    void expect(std::string_view text) {
        if (!take(text)) fail("expected '" + std::string(text) + "'");
    }
    void skip_behind(std::string_view text) {
        while (next() != text) {
        }
    }

    /// An integer, or the bits of a number written as such.
    std::optional<std::uint64_t> number() {
        const bool negative = peek() == "-";
        const std::size_t at = here_ + negative;
        if (at >= tokens_.size() || !std::isdigit(static_cast<unsigned char>(tokens_[at].text[0]))) return std::nullopt;
        here_ = at + 1;
        std::string_view digits = tokens_[at].text;
        const auto after = [&](const char* prefix) {
            const bool is = starts(digits, prefix) && digits.size() > 2;
            if (is) digits.remove_prefix(2);
            return is;
        };
        const bool hexadecimal = after("0f") || after("0F") || after("0d") || after("0D") || after("0x") || after("0X");
        if (digits.back() == 'U') digits.remove_suffix(1);
        std::uint64_t value = 0;
        const auto end = digits.data() + digits.size();
        if (std::from_chars(digits.data(), end, value, hexadecimal ? 16 : 10).ptr != end)
            --here_, fail("expected a number");
        return negative ? std::uint64_t(0) - value : value;
    }

    std::uint32_t count() {
        const auto n = number();
        if (!n) fail("expected a number");
        return static_cast<std::uint32_t>(*n);
    }

    /// ".b32" takes four bytes.
    std::uint32_t bytes_of_type() {
        static const std::map<std::string_view, std::uint32_t> sizes{{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}};
        const auto type = peek();
        const auto found = sizes.find(type.substr(std::min<std::size_t>(2, type.size())));
        if (found == sizes.end()) fail("expected a type");
        ++here_;
        return found->second;
    }
    static std::uint32_t aligned(std::uint32_t offset, std::uint32_t to) { return (offset + to - 1) / to * to; }

    struct declared {
        std::string name;
        std::uint32_t bytes = 0, alignment = 1, element = 1;
    };
    /// [.align N] .type name[count]
    declared a_variable() {
        declared v;
        if (take(".align")) v.alignment = count();
        const auto size = bytes_of_type();
        v.alignment = std::max(v.alignment, size);
        v.element = size;
        v.name = next();
        v.bytes = size;
        if (take("[")) {
            v.bytes = take("]") ? 0 : size * count();
            if (v.bytes) expect("]");
        }
        return v;
    }

    void declaration() {
        if (peek() == ".version" || peek() == ".target" || peek() == ".address_size") {
            next(), next();
            return;
        }
        while (peek() == ".visible" || peek() == ".extern" || peek() == ".weak") next();
        if (take(".shared")) return shared_variable();
        if (take(".global") || take(".const")) return global_variable();
        if (take(".entry")) return a_function(false);
        if (take(".func")) return a_function(true);
        fail("an unknown declaration");
    }
    void shared_variable() {
        const auto v = a_variable();
        const auto offset = aligned(module_->shared_bytes, std::max(v.alignment, 16u));
        shared_[v.name] = v.bytes ? offset : dynamic_shared;  // without a size: what a launch asks for
        module_->shared_bytes = v.bytes ? offset + v.bytes : module_->shared_bytes;
        expect(";");
    }
    void global_variable() {
        const auto v = a_variable();
        auto& to = module_->globals[v.name];
        to.bytes = v.bytes;
        to.memory = std::make_unique<char[]>(std::max<std::size_t>(v.bytes, 1));
        if (take("=")) {
            const bool list = take("{");
            std::uint32_t at = 0;
            do {
                const operand value = an_operand();
                if (value.slot != zero || at == v.bytes) --here_, fail("not a constant, or one too many");
                std::memcpy(to.memory.get() + at, &value.plus, v.element);
                at += v.element;
            } while (list && take(","));
            if (list) expect("}");
        }
        expect(";");
    }

    function& named(std::string_view name) {
        function& f = module_->functions[std::string(name)];
        f.name = name;
        return f;
    }

    place in_frame(const declared& v) {
        const auto offset = aligned(f_->frame_bytes, std::max(v.alignment, 8u));
        f_->frame_bytes = offset + v.bytes;
        places_[v.name] = {offset, v.bytes};
        return places_[v.name];
    }
    std::vector<place> parameters() {
        std::vector<place> all;
        expect("(");
        while (!take(")")) {
            expect(".param");
            all.push_back(in_frame(a_variable()));
            take(",");
        }
        return all;
    }

    void a_function(bool has_results) {
        function fresh;
        f_ = &fresh;
        places_.clear(), registers_.clear(), ranges_.clear(), labels_.clear(), branches_.clear();
        while (peek() == ".noreturn") next();
        if (has_results && peek() == "(") fresh.results = parameters();
        fresh.name = next();
        if (peek() == "(") fresh.parameters = parameters();
        while (peek() != "{" && peek() != ";") next();  // how many threads it may have
        if (take(";")) {
            named(fresh.name);
            return;
        }
        next();
        for (int depth = 1; depth > 0;)
            if (take("{"))
                ++depth;
            else if (take("}"))
                --depth;
            else
                statement();
        for (const auto& [at, label] : branches_) {
            if (!labels_.count(label)) fail("no label " + label);
            fresh.body[at].target = labels_[label];
        }
        fresh.body.push_back({.execute = handler_of("ret"), .number = module_->instructions++});
        fresh.source.push_back("its end");
        named(fresh.name) = std::move(fresh);
    }

    void statement() {
        if (take(".reg")) {
            next();
            do {
                const std::string name(next());
                if (take("<")) {
                    ranges_[name] = count();
                    expect(">");
                } else {
                    registers_.emplace(name, f_->registers++);
                }
            } while (take(","));
            expect(";");
        } else if (take(".local") || take(".param")) {
            in_frame(a_variable());
            expect(";");
        } else if (take(".shared")) {
            shared_variable();
        } else if (take(".pragma")) {
            skip_behind(";");
        } else if (starts(peek(), ".")) {
            fail("an unknown directive");
        } else if (here_ + 1 < tokens_.size() && tokens_[here_ + 1].text == ":") {
            labels_[std::string(next())] = static_cast<std::uint32_t>(f_->body.size());
            next();
            if (peek() == ".callprototype") skip_behind(";");
        } else {
            an_instruction();
        }
    }

    std::uint32_t slot_of(std::string_view name) {
        static const std::map<std::string_view, std::uint32_t> known{{"_", sink},           {"%tid.x", tid},
                                                                     {"%ntid.x", ntid},     {"%ctaid.x", ctaid},
                                                                     {"%nctaid.x", nctaid}, {"%laneid", laneid}};
        if (const auto found = known.find(name); found != known.end()) return found->second;
        if (const auto found = registers_.find(std::string(name)); found != registers_.end()) return found->second;
        const auto digits = name.find_last_not_of("0123456789") + 1;
        const auto range = ranges_.find(std::string(name.substr(0, digits)));
        if (range == ranges_.end() || digits == name.size() ||
            std::stoul(std::string(name.substr(digits))) >= range->second)
            fail("unknown: " + std::string(name));
        return registers_[std::string(name)] = f_->registers++;
    }
    /// A register, a number, or what has a name, and what is added to it.
    operand an_operand() {
        operand o;
        if (const auto n = number()) {
            o.plus = *n;
            return o;
        }
        const auto name = std::string(next());
        if (const auto place = places_.find(name); place != places_.end())
            o = {frame, place->second.offset};
        else if (const auto in_shared = shared_.find(name); in_shared != shared_.end())
            o = {zero, in_shared->second};
        else if (const auto global = module_->globals.find(name); global != module_->globals.end())
            o = {zero, reinterpret_cast<std::uintptr_t>(global->second.memory.get())};
        else if (const auto f = module_->functions.find(name); f != module_->functions.end())
            o = {zero, reinterpret_cast<std::uintptr_t>(&f->second)};
        else
            o = {slot_of(name), 0};
        if (take("+")) {
            const auto more = number();
            if (!more) fail("expected a number");
            o.plus += *more;
        }
        return o;
    }
    std::vector<place> handed_over() {
        std::vector<place> all;
        expect("(");
        while (!take(")")) {
            const auto found = places_.find(std::string(peek()));
            if (found == places_.end()) fail("expected a parameter");
            all.push_back(found->second);
            ++here_;
            take(",");
        }
        return all;
    }

    void an_instruction() {
        instruction i;
        const auto begin = here_;
        if (take("@")) {
            i.when = !take("!");
            i.guard = slot_of(next());
        }
        std::string name(next());
        std::size_t operands = 0;
        if (starts(name, "call")) {
            name = "call";
            call c;
            if (peek() == "(") c.results = handed_over(), expect(",");
            i.at[0] = an_operand();
            if (take(",")) c.arguments = handed_over();
            if (take(",")) next();  // its prototype
            i.target = static_cast<std::uint32_t>(f_->calls.size());
            f_->calls.push_back(std::move(c));
        } else if (name == "bra" || name == "bra.uni") {
            name = "bra";
            branches_.emplace_back(f_->body.size(), std::string(next()));
        } else {
            bool packs = false, unpacks = false;
            while (peek() != ";") {
                if (take("{")) (operands == 0 ? unpacks : packs) = true;
                if (take("[") || take("}") || take("]") || take(",")) continue;
                if (operands == i.at.size()) fail("too many operands");
                i.at[operands++] = an_operand();
            }
            if (starts(name, "mov.b") && (packs || unpacks)) name += packs ? ".pack" : ".unpack";
        }
        const bool named_barrier = i.at[0].slot != zero || i.at[0].plus != 0 || operands != 1;
        if (name == "bar.sync" && named_barrier) fail("a barrier other than 0 of all threads");
        expect(";");
        i.execute = handler_of(name);
        if (!i.execute) --here_, fail("unknown instruction " + name);
        i.number = module_->instructions++;
        f_->body.push_back(i);
        std::string source;
        for (auto at = begin; at + 1 < here_; ++at)
            source += (source.empty() ? "" : " ") + std::string(tokens_[at].text);
        f_->source.push_back(std::move(source));
    }

    std::vector<token> tokens_;
    std::size_t here_ = 0;
    std::unique_ptr<module> module_ = std::make_unique<module>();
    std::map<std::string, std::uint64_t> shared_;
    // of the function that is read
    function* f_ = nullptr;
    std::map<std::string, place> places_;
    std::map<std::string, std::uint32_t> registers_, ranges_, labels_;
    std::vector<std::pair<std::size_t, std::string>> branches_;
};

}  // namespace

std::unique_ptr<module> parse(const std::string& text) { return parser(text).all(); }

}  // namespace ptx
