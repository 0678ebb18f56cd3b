// Splits texts into n-grams, as scikit-learn's vectorizers do. Texts must be ASCII.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/records/step.hpp"

namespace unkernel::records {

enum class Analyzer { word, character, character_in_words };

struct TextOptions {
  Analyzer analyzer;
  bool lowercase;
  std::size_t shortest_token;     // the least number of characters of a token: 1 or 2
  std::size_t shortest, longest;  // n-grams
  bool binary;                    // count each n-gram once per text
  data::NameTable stop_words;
};

class TextAnalyzer {
 public:
  explicit TextAnalyzer(TextOptions options) : options_(std::move(options)) {
    check_plan(options_.shortest >= 1 && options_.shortest <= options_.longest && options_.longest <= 1000,
               "lengths of n-grams are out of range");
  }

  const TextOptions& options() const { return options_; }

  // Calls use(gram) for each n-gram of the text.
  template <class Use>
  void for_each_gram(std::string_view text, const Use& use) const {
    // The tokens of a text, separated by one blank each, so that each n-gram is a part of the buffer.
    thread_local std::string buffer;
    thread_local std::vector<std::size_t> begins;
    buffer.clear();
    begins.clear();
    switch (options_.analyzer) {
      case Analyzer::word:
        list_words(text, buffer, begins);
        count_words(buffer, begins, use);
        break;
      case Analyzer::character:
        collapse_space(text, buffer);
        count_characters(buffer, use);
        break;
      default: count_in_words(text, buffer, use);
    }
  }

 private:
  static bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  // Matches the ASCII characters that are white space for Python's str.split and \s.
  static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
  }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

  void append(std::string_view part, std::string& buffer) const {
    if (options_.lowercase) {
      for (const char c : part) buffer.push_back(lower(c));
    } else {
      buffer.append(part);
    }
  }

  void list_words(std::string_view text, std::string& buffer, std::vector<std::size_t>& begins) const {
    for (std::size_t at = 0; at < text.size();) {
      if (!is_word_character(text[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < text.size() && is_word_character(text[at])) ++at;
      if (at - begin < options_.shortest_token) continue;
      const std::size_t place = buffer.size();
      append(text.substr(begin, at - begin), buffer);
      if (options_.stop_words.size() > 0 &&
          options_.stop_words.find(std::string_view(buffer).substr(place)) >= 0) {
        buffer.resize(place);
        continue;
      }
      begins.push_back(place);
      buffer.push_back(' ');
    }
    begins.push_back(buffer.size());
  }

  template <class Use>
  void count_words(std::string_view buffer, const std::vector<std::size_t>& begins, const Use& use) const {
    const std::size_t words = begins.size() - 1;
    for (std::size_t length = options_.shortest; length <= std::min(options_.longest, words); ++length) {
      for (std::size_t first = 0; first + length <= words; ++first)
        use(buffer.substr(begins[first], begins[first + length] - 1 - begins[first]));
    }
  }

  // Replaces each run of two or more white-space characters by one blank.
  void collapse_space(std::string_view text, std::string& buffer) const {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && is_space(text[end])) ++end;
      if (end - at >= 2) {
        buffer.push_back(' ');
        at = end;
      } else {
        append(text.substr(at, 1), buffer);
        ++at;
      }
    }
  }

  template <class Use>
  void count_characters(std::string_view text, const Use& use) const {
    for (std::size_t length = options_.shortest; length <= std::min(options_.longest, text.size());
         ++length) {
      for (std::size_t first = 0; first + length <= text.size(); ++first) use(text.substr(first, length));
    }
  }

  // Lists the n-grams of each word with a blank on either side. A word that is shorter than the n-grams is
  // listed once.
  template <class Use>
  void count_in_words(std::string_view text, std::string& buffer, const Use& use) const {
    for (std::size_t at = 0; at < text.size();) {
      if (is_space(text[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < text.size() && !is_space(text[at])) ++at;
      buffer.assign(1, ' ');
      append(text.substr(begin, at - begin), buffer);
      buffer.push_back(' ');
      const std::string_view word = buffer;
      for (std::size_t length = options_.shortest; length <= options_.longest; ++length) {
        use(word.substr(0, length));
        for (std::size_t first = 1; first + length <= word.size(); ++first) use(word.substr(first, length));
        if (length >= word.size()) break;
      }
    }
  }

  TextOptions options_;
};

}  // namespace unkernel::records
