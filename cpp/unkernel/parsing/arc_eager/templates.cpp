#include "unkernel/parsing/arc_eager/templates.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "unkernel/base/error.hpp"
#include "unkernel/parsing/features/template_lines.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::pair<std::string_view, Attribute> attribute_names[] = {
    {"form", Attribute::form},
    {"word", Attribute::word},
    {"lemma", Attribute::lemma},
    {"upos", Attribute::upos},
    {"xpos", Attribute::xpos},
    {"feats", Attribute::feats},
    {"prefix1", Attribute::prefix1},
    {"prefix2", Attribute::prefix2},
    {"prefix3", Attribute::prefix3},
    {"prefix4", Attribute::prefix4},
    {"suffix1", Attribute::suffix1},
    {"suffix2", Attribute::suffix2},
    {"suffix3", Attribute::suffix3},
    {"suffix4", Attribute::suffix4},
    {"shape", Attribute::shape},
    {"label", Attribute::label},
    {"left-valency", Attribute::left_valency},
    {"right-valency", Attribute::right_valency}};
constexpr std::pair<std::string_view, Attribute> bare_names[] = {{"distance", Attribute::distance},
                                                                 {"direction", Attribute::direction}};
constexpr std::pair<std::string_view, Step> step_names[] = {
    {"head", Step::head},     {"left", Step::left},     {"left2", Step::left2}, {"right", Step::right},
    {"right2", Step::right2}, {"before", Step::before}, {"after", Step::after}};
constexpr std::pair<std::string_view, Base> move_bases[] = {{"stack", Base::stack}, {"input", Base::input}};
constexpr std::pair<std::string_view, Base> label_bases[] = {{"head", Base::head},
                                                             {"dependent", Base::dependent}};

constexpr std::int32_t farthest = 1000;  // no window is larger, and sums with it do not overflow
constexpr std::size_t most_values = 4;
constexpr std::size_t most_steps = 8;

template <class Value, std::size_t count>
std::string listed(const std::pair<std::string_view, Value> (&names)[count]) {
  std::string list;
  for (const auto& [name, value] : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

std::vector<std::string_view> trimmed_pieces(std::string_view text, char separator) {
  std::vector<std::string_view> found = pieces(text, separator);
  for (std::string_view& piece : found) piece = trimmed(piece);
  return found;
}

class TemplateReader {
 public:
  TemplateReader(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  ParserTemplates read() {
    for_each_line(text_, [&](std::string_view line, std::int64_t number) {
      line_ = number;
      line = trimmed(line);
      if (!line.empty()) read_line(line);
    });
    if (read_.moves.core == 0) throw FormatError(file_, 0, 0, "there is no feature under [moves]");
    if (read_.labels.core == 0) throw FormatError(file_, 0, 0, "there is no feature under [labels]");
    return std::move(read_);
  }

 private:
  [[noreturn]] void refuse(std::initializer_list<std::string_view> pieces_of_reason) const {
    std::string reason;
    for (const std::string_view piece : pieces_of_reason) reason.append(piece);
    throw FormatError(file_, line_, 0, reason);
  }

  void read_line(std::string_view line) {
    if (line == "[moves]" || line == "[beside moves]") {
      section_ = &read_.moves;
      beside_ = line != "[moves]";
    } else if (line == "[labels]" || line == "[beside labels]") {
      section_ = &read_.labels;
      beside_ = line != "[labels]";
    } else if (line.front() == '[') {
      refuse({"there is no section ", line,
              ": sections are [moves], [beside moves], [labels] and [beside labels]"});
    } else if (section_ == nullptr) {
      refuse({"a feature before the first section: write [moves] or [labels] above it"});
    } else {
      add_template(line);
    }
  }

  void add_template(std::string_view line) {
    if (!beside_ && section_->core < section_->templates.size())
      refuse({"features that stand beside others come behind them"});
    section_->templates.push_back(read_template(line));
    section_->core += !beside_;
  }

  Template read_template(std::string_view line) {
    Template made;
    for (const std::string_view value : trimmed_pieces(line, '+')) {
      made.values.push_back(read_value(value));
      made.text.append(made.text.empty() ? "" : " + ").append(value);
    }
    if (made.values.size() > most_values)
      refuse({"a feature of more than ", std::to_string(most_values), " values: the degree joins the rest"});
    const auto same = [&](const Template& other) { return other.values == made.values; };
    if (std::any_of(section_->templates.begin(), section_->templates.end(), same))
      refuse({"the feature '", made.text, "' is there twice"});
    return made;
  }

  TemplateValue read_value(std::string_view text) {
    if (const auto bare = named(bare_names, text)) {
      if (*bare == Attribute::direction && section_ == &read_.moves)
        refuse({"only arcs have a direction: put it under [labels]"});
      return {0, *bare};
    }
    const auto parts = trimmed_pieces(text, '.');
    if (parts.size() < 2)
      refuse({"'", text, "' is no feature: write an address and an attribute, such as stack.word"});
    const auto attribute = named(attribute_names, parts.back());
    if (!attribute)
      refuse({"there is no attribute '", parts.back(), "': there are ", listed(attribute_names)});
    return {place_among(section_->addresses, read_address(parts)), *attribute};
  }

  Address read_address(const std::vector<std::string_view>& parts) {
    Address address = read_base(parts.front());
    if (parts.size() - 2 > most_steps)
      refuse({"an address of more than ", std::to_string(most_steps), " steps"});
    for (std::size_t k = 1; k + 1 < parts.size(); ++k) {
      const auto step = named(step_names, parts[k]);
      if (!step) refuse({"there is no step '", parts[k], "': there are ", listed(step_names)});
      address.steps.push_back(*step);
    }
    return address;
  }

  Address read_base(std::string_view text) {
    const std::size_t bracket = text.find('[');
    const std::string_view name = trimmed(text.substr(0, bracket));
    const bool of_moves = section_ == &read_.moves;
    const auto base = of_moves ? named(move_bases, name) : named(label_bases, name);
    if (!base)
      refuse({"'", name, "' is no address here: there are ",
              (of_moves ? listed(move_bases) : listed(label_bases))});
    return {*base, bracket == std::string_view::npos ? 0 : read_offset(text.substr(bracket), of_moves), {}};
  }

  std::int32_t read_offset(std::string_view text, bool of_moves) {
    std::int32_t offset = 0;
    const char* first = text.data() + 1;
    const char* last = text.data() + text.size() - 1;
    const auto [end, error] = first < last ? std::from_chars(first, last, offset)
                                           : std::from_chars_result{first, std::errc::invalid_argument};
    if (text.back() != ']' || error != std::errc() || end != last || offset < -farthest ||
        offset > farthest) {
      refuse({"'", text, "' is no place: write a number in brackets, such as [1]"});
    }
    if (of_moves && offset < 0)
      refuse({"the stack and the input count from 0: use the steps before and after for neighbours"});
    return offset;
  }

  const std::string& file_;
  std::string_view text_;
  std::int64_t line_ = 0;
  ParserTemplates read_;
  TemplateSet* section_ = nullptr;
  bool beside_ = false;
};

Word inside(const ArcEagerState& state, Word word) {
  return word > 0 && word <= static_cast<Word>(state.words()) ? word : no_word;
}

Word step_from(const ArcEagerState& state, Word word, Step step) {
  if (word == no_word) return no_word;
  switch (step) {
    case Step::head: return state.head(word);
    case Step::left: return state.left(word);
    case Step::left2: return state.second_left(word);
    case Step::right: return state.right(word);
    case Step::right2: return state.second_right(word);
    case Step::before: return inside(state, word - 1);
    case Step::after: return inside(state, word + 1);
  }
  return no_word;
}

}  // namespace

ParserTemplates read_templates(const std::string& file, std::string_view text) {
  return TemplateReader(file, text).read();
}

Word word_at(const ArcEagerState& state, const Arc& arc, const Address& address) {
  Word word = no_word;
  switch (address.base) {
    case Base::stack: word = state.stack(address.offset); break;
    case Base::input: word = state.input(address.offset); break;
    case Base::head: word = inside(state, arc.head + address.offset); break;
    case Base::dependent: word = inside(state, arc.child + address.offset); break;
  }
  for (const Step step : address.steps) word = step_from(state, word, step);
  return word;
}

}  // namespace unkernel::parsing
