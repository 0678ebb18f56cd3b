#include "unkernel/parsing/text/tokenizer.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "unkernel/base/parallel.hpp"
#include "unkernel/parsing/text/conllu_lines.hpp"

namespace unkernel::parsing {
namespace {

// A task has several short paragraphs or one longer one.
constexpr std::size_t min_bytes_per_task = 1 << 16;

// Some whole stretches of text, for one thread.
struct Task {
  std::size_t begin;
  std::size_t end;
  bool begins_paragraph;
};

// Splits paragraphs, with the buffers of one thread.
class Splitter {
 public:
  explicit Splitter(const TokenizerParts& parts)
      : parts_(parts),
        features_of_(parts.spec.features()),
        boundary_worker_(parts.boundaries.worker()),
        split_worker_(parts.splits == nullptr ? nullptr : parts.splits->worker()) {}

  // Tokenizes some paragraphs, or a part of one. The text must not begin with a blank. `before` has the
  // blanks before the first token.
  std::string run(std::string_view text, std::string_view before, bool begins_paragraph,
                  const Monitor& monitor) {
    std::string out;
    const auto decide = [&](const CharacterWindow& window, std::size_t at, const SentenceSoFar& sentence) {
      return boundary(window, at, sentence);
    };
    const auto end = [&](const CharacterWindow&, const TokenFound& token) {
      sentence_.push_back(token.place);
      if (token.boundary != Boundary::sentence) return;
      if (begins_paragraph) out += "# newpar\n";
      write_sentence(text, before, out);
      before = {};
      begins_paragraph = token.ends_paragraph;
    };
    scan_text(parts_.spec.characters(), text, decide, end, monitor);
    return out;
  }

 private:
  Boundary boundary(const CharacterWindow& window, std::size_t at, const SentenceSoFar& sentence) {
    const Character& next = window[at + 1];
    const bool must_end = next.kind <= line_end_kind && !next.may_be_inside;
    const std::uint8_t known = parts_.spec.known_answer(window, at);
    if (known != TokenizerSpec::use_classifier) {
      const auto answer = static_cast<Boundary>(known);
      return must_end && answer == Boundary::inside ? Boundary::token : answer;
    }
    features_of_.list(window, at, sentence, features_);
    find_columns(parts_.spec.column_of(), features_, columns_);
    double scores[boundary_count];
    const engines::SparseRow<std::int32_t> row{columns_};
    parts_.boundaries.score_until_decided(row, *boundary_worker_, scores);
    const Boundary best = best_from(Boundary::inside, scores);
    if (!must_end || best != Boundary::inside) return best;
    // Something must end here: choose the best class other than `inside`.
    parts_.boundaries.score(row, *boundary_worker_, scores);
    return best_from(Boundary::token, scores);
  }

  static Boundary best_from(Boundary first, const double* scores) {
    auto best = static_cast<std::size_t>(first);
    for (std::size_t k = best + 1; k < boundary_count; ++k) best = scores[k] > scores[best] ? k : best;
    return static_cast<Boundary>(best);
  }

  bool is_split(std::string_view text, std::size_t token, const Multiwords::Choice& choice) {
    if (choice.rule == Multiwords::no_split) return false;
    if (!choice.depends_on_context || parts_.splits == nullptr) return true;
    Multiwords::list_features(parts_.spec.characters(), text, sentence_, token, features_);
    find_columns(parts_.multiwords.column_of(), features_, columns_);
    double score = 0.0;
    parts_.splits->score(engines::SparseRow<std::int32_t>{columns_}, *split_worker_, &score);
    return score > 0.0;
  }

  void write_sentence(std::string_view text, std::string_view before, std::string& out) {
    const CharacterKinds& kinds = parts_.spec.characters();
    write_text_comment(text, sentence_, out);
    std::int64_t number = 1;
    for (std::size_t k = 0; k < sentence_.size(); ++k) {
      const TokenPlace& token = sentence_[k];
      const std::string_view form = text.substr(token.begin, token.end - token.begin);
      const Multiwords::Choice choice = parts_.multiwords.choice(kinds, form);
      words_.clear();
      if (is_split(text, k, choice)) parts_.multiwords.split(kinds, form, choice.rule, words_);
      number = write_token(text, token, k == 0 ? before : std::string_view(), words_, number, out);
    }
    out += '\n';
    sentence_.clear();
  }

  const TokenizerParts& parts_;
  BoundaryFeatures features_of_;
  std::unique_ptr<engines::Worker> boundary_worker_;
  std::unique_ptr<engines::Worker> split_worker_;
  std::vector<TokenPlace> sentence_;
  std::vector<std::uint64_t> features_;
  std::vector<std::int32_t> columns_;
  std::vector<std::string> words_;
};

std::vector<Task> tasks_of(const CharacterKinds& kinds, std::string_view text, bool begins_paragraph) {
  std::vector<Task> tasks;
  for (Stretch last{0, begins_paragraph}; last.end < text.size();) {
    Task task{last.end, last.end, last.ends_paragraph};
    do {
      last = stretch_from(kinds, text, task.end);
      task.end = last.end;
    } while (last.ends_paragraph && task.end < text.size() && task.end - task.begin < min_bytes_per_task);
    tasks.push_back(task);
  }
  return tasks;
}

}  // namespace

void check(const TokenizerParts& parts) {
  if (parts.boundaries.scores() != boundary_count || (parts.splits != nullptr && parts.splits->scores() != 1))
    throw std::invalid_argument("the classifiers do not fit the tokenizer");
}

std::string tokenize(const TokenizerParts& parts, std::string_view text, bool begins_paragraph, int threads,
                     const Monitor& monitor) {
  check(parts);
  const CharacterKinds& kinds = parts.spec.characters();
  const std::size_t begin = skip_blanks(kinds, text, 0);
  const std::string_view before = text.substr(0, begin), rest = text.substr(begin);
  const std::vector<Task> tasks = tasks_of(kinds, rest, begins_paragraph);
  std::vector<std::string> results(tasks.size());
  const auto make = [&] { return std::make_unique<Splitter>(parts); };
  parallel_workers(threads, std::ssize(results), make, [&](Splitter& splitter, std::int64_t k) {
    const auto number = static_cast<std::size_t>(k);
    const Task& task = tasks[number];
    results[number] = splitter.run(rest.substr(task.begin, task.end - task.begin),
                                   number == 0 ? before : std::string_view(), task.begins_paragraph, monitor);
  });
  std::string joined;
  for (std::string& result : results) {
    joined += result;
    result = {};
  }
  return joined;
}

SplitRows split_rows(const TokenizerSpec& spec, const Multiwords& multiwords, const SplitText& given,
                     const Monitor& monitor) {
  SplitRows rows;
  std::vector<TokenPlace> sentence;
  std::vector<std::uint64_t> features;
  std::int64_t before = 0;  // number of tokens in the previous sentences
  for (std::size_t k = 0, begin = skip_blanks(spec.characters(), given.text, 0); k < given.ends.size(); ++k) {
    monitor.throw_if_stopped();
    const auto end = static_cast<std::size_t>(given.ends[k]);
    if (end < begin || end > given.text.size())
      throw std::invalid_argument("the ends of tokens do not match the text");
    const std::size_t next = skip_blanks(spec.characters(), given.text, end);
    sentence.push_back({begin, end, next});
    begin = next;
    if (static_cast<Boundary>(given.boundaries[k]) != Boundary::sentence && k + 1 < given.ends.size())
      continue;
    for (std::size_t token = 0; token < sentence.size(); ++token) {
      const TokenPlace& place = sentence[token];
      if (!multiwords.choice(spec.characters(), given.text.substr(place.begin, place.end - place.begin))
               .depends_on_context)
        continue;
      Multiwords::list_features(spec.characters(), given.text, sentence, token, features);
      rows.features.insert(rows.features.end(), features.begin(), features.end());
      rows.tokens.push_back(before + static_cast<std::int64_t>(token));
    }
    before += static_cast<std::int64_t>(sentence.size());
    sentence.clear();
  }
  return rows;
}

}  // namespace unkernel::parsing
