#include "unkernel/parsing/text/conllu_lines.hpp"

#include <charconv>

namespace unkernel::parsing {
namespace {

void write_number(std::int64_t number, std::string& out) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void write_escaped(std::string_view blanks, std::string& out) {
  for (const char c : blanks) {
    switch (c) {
      case ' ': out += "\\s"; break;
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\0': out += "\\0"; break;
      case '\\': out += "\\\\"; break;
      case '|': out += "\\p"; break;
      default: out += c;
    }
  }
}

void write_misc(std::string_view before, std::string_view after, std::string& out) {
  const std::size_t begin = out.size();
  const auto key = [&](const char* name) {
    if (out.size() > begin) out += '|';
    out += name;
  };
  if (after.empty()) key("SpaceAfter=No");
  if (!before.empty()) {
    key("SpacesBefore=");
    write_escaped(before, out);
  }
  if (!after.empty() && after != " ") {
    key("SpacesAfter=");
    write_escaped(after, out);
  }
  if (out.size() == begin) out += '_';
  out += '\n';
}

}  // namespace

void write_text_comment(std::string_view text, std::span<const TokenPlace> sentence, std::string& out) {
  out += "# text = ";
  for (const TokenPlace& token : sentence) {
    out += text.substr(token.begin, token.end - token.begin);
    if (token.next > token.end && &token != &sentence.back()) out += ' ';
  }
  out += '\n';
}

std::int64_t write_token(std::string_view text, const TokenPlace& token, std::string_view before,
                         std::span<const std::string> words, std::int64_t number, std::string& out) {
  constexpr std::string_view empty_columns = "\t_\t_\t_\t_\t_\t_\t_\t";
  write_number(number, out);
  if (!words.empty()) {
    out += '-';
    write_number(number + static_cast<std::int64_t>(words.size()) - 1, out);
  }
  out += '\t';
  out += text.substr(token.begin, token.end - token.begin);
  out += empty_columns;
  write_misc(before, text.substr(token.end, token.next - token.end), out);
  if (words.empty()) return number + 1;
  for (const std::string& word : words) {
    write_number(number++, out);
    out += '\t';
    out += word;
    out += empty_columns;
    out += "_\n";
  }
  return number;
}

}  // namespace unkernel::parsing
