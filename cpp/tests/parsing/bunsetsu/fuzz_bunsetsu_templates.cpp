// For any bytes, a file of templates for bunsetsu is refused with a FormatError at an existing line, or its
// names are valid, different templates.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/parsing/bunsetsu/templates.hpp"

using namespace unkernel::parsing;

std::vector<std::string> fuzz_seeds() {
  return {"modifier.content.surface\n# why\ncandidate.function.pos\n",
          "modifier.first.reading\ncandidate.last.subpos # its last "
          "word\nbetween.distance\nsame.modifier.after\n",
          "modifier.brackets\ncandidate.punctuation\nbefore.particles\nbetween.brackets\nafter."
          "beginning\nafter.end\n",
          "before.first.ctype\r\nafter.last.cform\n\n",
          "between.distance\nbetween.distance\n",
          "between.size\nsame.after.before\n.first\nmodifier..x\n",
          "\xEF\xBB\xBF"
          "distance\n",
          ""};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  try {
    const std::vector<std::string> names = bunsetsu_template_names("fuzz", text);
    for (const std::string& name : names) CHECK(read_bunsetsu_template(name).name == name);
    const bool differ = std::set<std::string>(names.begin(), names.end()).size() == names.size();
    try {
      CHECK(read_bunsetsu_templates(names).size() == names.size() && differ);
    } catch (const std::invalid_argument&) { CHECK(!differ || names.empty()); }
  } catch (const unkernel::FormatError& error) {
    CHECK(error.line >= 0 && error.line <= std::ranges::count(text, '\n') + 1 && !error.reason.empty());
  }
  return 0;
}
