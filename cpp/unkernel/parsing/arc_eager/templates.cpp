#include "unkernel/parsing/arc_eager/templates.hpp"

#include <map>
#include <set>
#include <utility>

#include "unkernel/parsing/features/template_text.hpp"

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
    {"cluster", Attribute::cluster},
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

// Positions are relative to a word. 1000 exceeds every useful window, and is so small that sums of positions
// and word numbers do not overflow.
constexpr TemplateLimits limits{.lowest_position = -1000, .highest_position = 1000, .most_joined = 4};
constexpr std::size_t most_steps = 8;

// Interprets the names of a template text.
class ArcTemplateReader {
 public:
  ArcTemplateReader(const std::string& file, std::string_view text) : text_(file, text, limits) {}

  ParserTemplates read() {
    for (const TemplateLine& line : text_.lines()) {
      line_ = &line;
      if (line.heading.empty()) {
        add_template();
      } else {
        begin_section();
      }
    }
    if (templates_.moves.core == 0) text_.fail("there is no feature under [moves]");
    if (templates_.labels.core == 0) text_.fail("there is no feature under [labels]");
    return std::move(templates_);
  }

 private:
  [[noreturn]] void fail(std::int64_t column, const std::string& reason) const {
    text_.fail(*line_, column, reason);
  }

  void begin_section() {
    const std::string_view heading = line_->heading;
    if (heading == "[moves]" || heading == "[beside moves]") {
      section_ = &templates_.moves;
      names_ = &move_names_;
    } else if (heading == "[labels]" || heading == "[beside labels]") {
      section_ = &templates_.labels;
      names_ = &label_names_;
    } else {
      fail(line_->column, message({"there is no section ", heading,
                                   ": sections are [moves], [beside moves], [labels] and [beside labels]"}));
    }
    in_beside_section_ = heading.starts_with("[beside ");
  }

  void add_template() {
    if (section_ == nullptr)
      fail(line_->column, "a feature before the first section: write [moves] or [labels] above it");
    if (!in_beside_section_ && section_->core < section_->templates.size())
      fail(line_->column, "features of a [beside] section come after those of the section itself");
    Template feature{joined_text(*line_), {}};
    for (const TemplatePath& path : line_->paths) feature.values.push_back(read_value(path));
    if (!names_->templates.insert(feature.values).second)
      fail(line_->column, message({"the feature '", feature.text, "' occurs twice"}));
    section_->templates.push_back(std::move(feature));
    section_->core += !in_beside_section_;
  }

  TemplateValue read_value(const TemplatePath& path) {
    if (path.names.size() == 1 && !path.position) {
      if (const auto bare = find_named(bare_names, path.names.front().text)) {
        if (*bare == Attribute::direction && section_ == &templates_.moves)
          fail(path.column, "only arcs have a direction: put it under [labels]");
        return {0, *bare};
      }
    }
    if (path.names.size() < 2)
      fail(path.column,
           message({"'", path.text,
                    "' is not a feature: write an address and an attribute, such as stack.word"}));
    const TemplateName& last = path.names.back();
    const auto attribute = find_named(attribute_names, last.text);
    if (!attribute)
      fail(last.column, message({"there is no attribute '", last.text, "'; attributes are ",
                                 join_names(attribute_names)}));
    return {find_or_add_address(read_address(path)), *attribute};
  }

  // Returns the number of an address in its section. Adds a new address to the section.
  std::size_t find_or_add_address(const Address& address) {
    const auto [entry, is_new] = names_->addresses.try_emplace(address, section_->addresses.size());
    if (is_new) section_->addresses.push_back(address);
    return entry->second;
  }

  Address read_address(const TemplatePath& path) {
    Address address{read_base(path.names.front()), path.position.value_or(0), {}};
    if (section_ == &templates_.moves && address.offset < 0)
      fail(path.column,
           "the stack and the input count from 0: use the steps before and after for neighbours");
    if (path.names.size() - 2 > most_steps)
      fail(path.column, message({"an address of more than ", std::to_string(most_steps), " steps"}));
    for (std::size_t k = 1; k + 1 < path.names.size(); ++k) {
      const auto step = find_named(step_names, path.names[k].text);
      if (!step)
        fail(path.names[k].column,
             message({"there is no step '", path.names[k].text, "'; steps are ", join_names(step_names)}));
      address.steps.push_back(*step);
    }
    return address;
  }

  Base read_base(const TemplateName& name) {
    const bool is_for_moves = section_ == &templates_.moves;
    const auto base = is_for_moves ? find_named(move_bases, name.text) : find_named(label_bases, name.text);
    if (!base)
      fail(name.column, message({"'", name.text, "' is not an address here; addresses are ",
                                 is_for_moves ? join_names(move_bases) : join_names(label_bases)}));
    return *base;
  }

  TemplateText text_;
  const TemplateLine* line_ = nullptr;
  ParserTemplates templates_;
  // Fast lookup of the addresses and templates read so far in a section.
  struct Names {
    std::map<Address, std::size_t> addresses;
    std::set<std::vector<TemplateValue>> templates;
  };

  TemplateSet* section_ = nullptr;
  Names* names_ = nullptr;  // of the section
  Names move_names_, label_names_;
  bool in_beside_section_ = false;
};

// Returns the word if it is in the sentence, otherwise no_word.
Word word_in_sentence(const ArcEagerState& state, Word word) {
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
    case Step::before: return word_in_sentence(state, word - 1);
    case Step::after: return word_in_sentence(state, word + 1);
  }
  return no_word;
}

}  // namespace

ParserTemplates read_templates(const std::string& file, std::string_view text) {
  return ArcTemplateReader(file, text).read();
}

Word word_at(const ArcEagerState& state, const Arc& arc, const Address& address) {
  Word word = no_word;
  switch (address.base) {
    case Base::stack: word = state.stack(address.offset); break;
    case Base::input: word = state.input(address.offset); break;
    case Base::head: word = word_in_sentence(state, arc.head + address.offset); break;
    case Base::dependent: word = word_in_sentence(state, arc.child + address.offset); break;
  }
  for (const Step step : address.steps) word = step_from(state, word, step);
  return word;
}

}  // namespace unkernel::parsing
