#include "fuzz/fuzz.hpp"

#include <fprnn/tasks/babi.hpp>

namespace {

// The stories as a file without supports.
std::string file_of(const std::vector<fprnn::babi_story>& stories) {
    std::string bytes;
    for (const auto& story : stories) {
        int id = 0;
        for (std::string line : story.lines) {
            if (const auto mark = line.find(" ? "); mark != std::string::npos)
                line = line.substr(0, mark) + "? \t" + line.substr(mark + 3) + "\t";
            bytes += std::to_string(++id) + " " + line + "\n";
        }
    }
    return bytes;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
    return {"1 Mary moved to the bathroom.\n2 Where is Mary? \tbathroom\t1\n3 What is Mary carrying?\tnothing\t\n",
            "1 Wolves are afraid of cats.\r\n1 How do you go from a to b?\tn,w\t\r\n", "1 A.\n3 B.\n", "1 A.", "1 A"};
}

void fuzz::read(std::string_view bytes) {
    try {
        const auto stories = fprnn::parse_babi(bytes, "file", 1);
        claim(!stories.empty());
        for (const auto& story : stories) claim(!story.lines.empty());
        const auto again = fprnn::parse_babi(file_of(stories), "again", 1);
        claim(again.size() == stories.size());
        for (std::size_t i = 0; i < stories.size(); ++i) claim(again[i].lines == stories[i].lines);
    } catch (const fprnn::argument_error& e) {
        const std::string_view message = e.what();
        claim(message.starts_with("parse_babi: file:") && message.size() < 300);
        for (const char c : message) claim(static_cast<unsigned char>(c) >= ' ');
    }
}
