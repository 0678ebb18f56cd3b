"""The slow twin of tokenizers: whole paragraphs as lists, features as tuples of their values.

It takes the learnt parameters from the arrays of a model, and runs its classifiers row by row.
"""

from __future__ import annotations

import numpy as np

MASK = 2**64 - 1
LONGEST = 24
BLANK, LINE_END = 0, 1
OTHER, UPPER = 0, 1
INSIDE, TOKEN, SENTENCE, ASK = range(4)
NOTHING = ("\0", LINE_END, False)  # value beyond the ends of a paragraph
ESCAPES = {" ": "\\s", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def hash_codes(codes):
    state = 0x51ED270B0A1F39C5
    for code in codes:
        state = (state ^ code) * 0x9E3779B97F4A7C15 & MASK
        state ^= state >> 32
    return state


def key(codes):
    return mix(hash_codes(codes)) >> 1


def feature(number, *values):
    """Return the hash of the feature with this number in the list, counted from 1."""
    value = values[0]
    for other in values[1:]:
        value = mix(value & MASK) + other
    return mix((value + 0x632BE59BD9B4E019 * number) & MASK) >> 1


class Characters:
    """Kinds, shapes and cases."""

    def __init__(self, arrays):
        self.pages, self.kinds, self.shapes = (arrays[name].tolist() for name in ("pages", "kinds", "shapes"))
        cases = arrays["cases"].tolist()
        self.lower_of = dict(zip(cases[::2], cases[1::2], strict=True))

    def kind(self, character):
        code = ord(character)
        return self.kinds[self.pages[code >> 8] * 256 + (code & 255)]

    def lower(self, character):
        code = ord(character)
        return ord(character.lower()) if code < 128 else self.lower_of.get(code, code)

    def shape(self, character, kind):
        shape = self.shapes[kind]
        return ord(character) + 16 if shape == OTHER else shape


def paragraphs(characters, text):
    """Yield the paragraphs of a text: the blanks before, a list of runs, and the blanks after.

    A run is a tuple: a character or several blanks, its kind, and whether it may be inside a word.
    """
    runs, position = [], 0
    while position < len(text):
        end = position + 1
        kind = characters.kind(text[position])
        while kind == BLANK and end < len(text) and characters.kind(text[end]) == BLANK:
            end += 1
        runs.append((text[position:end], kind))
        position = end
    blanks_before = runs.pop(0)[0] if runs and runs[0][1] == BLANK else ""
    current = []
    for number, (run, kind) in enumerate(runs):
        if kind != BLANK:
            current.append((run, kind, False))
            continue
        line_ends = run.replace("\r\n", "\n").replace("\r", "\n").count("\n")
        if line_ends > 1 or number == len(runs) - 1:
            yield blanks_before, current, run
            blanks_before, current = "", []
        else:
            may_be_inside = len(run) == 1 and (run == " " or ord(run) >= 0xA0)
            current.append((run, LINE_END if line_ends else BLANK, may_be_inside))
    if current:
        yield blanks_before, current, ""


class Tokenizer:
    """The slow twin of a TokenizerModel."""

    def __init__(self, model):
        self.arrays = model.arrays
        self.characters = Characters(model.arrays)
        self.n_kinds = len(self.characters.shapes)
        self.uses = dict(zip(model.arrays["words"].tolist(), model.arrays["uses"].tolist(), strict=True))
        self.columns = {code: k for k, code in enumerate(model.arrays["features"].tolist())}
        self.split_columns = {code: k for k, code in enumerate(model.arrays["split_features"].tolist())}
        self.boundaries, self.splits = model.boundary_classifier_, model.split_classifier_
        self.rules, self.longest_ending = model.rules, model.longest_ending
        self.rule_of = {
            part: dict(
                zip(model.arrays[f"{part}s"].tolist(), model.arrays[f"{part}_rules"].tolist(), strict=True)
            )
            for part in ("token", "ending")
        }

    def tokenize(self, text):
        """Return the complete result in CoNLL-U."""
        return "".join(
            line
            for before, run, after in paragraphs(self.characters, text)
            for line in self.paragraph(before, run, after)
        )

    def paragraph(self, before, run, after):
        yield "# newpar\n"
        sentence, begin, state = [], 0, State()
        at = 0
        while at < len(run):
            last = at == len(run) - 1
            apart = not last and run[at + 1][1] <= LINE_END
            result = SENTENCE if last else self.boundary(run, at, begin, state)
            if result != INSIDE:
                form = "".join(character for character, _, _ in run[begin : at + 1])
                sentence.append((form, after if last else run[at + 1][0] if apart else ""))
                state.end_token(self, run[begin : at + 1])
                begin = at + 1 + apart
            if result == SENTENCE:
                yield from self.lines(before, sentence)
                before, sentence, state = "", [], State()
            at += 1 + apart

    def boundary(self, run, at, begin, state):
        def kind(number):
            return (run[number] if number < len(run) else NOTHING)[1]

        following = kind(at + 1)
        table = {BLANK: 1, LINE_END: 2}.get(following, 0)
        second = kind(at + 2) if table else following
        decision = self.arrays["pairs"][(table * self.n_kinds + kind(at)) * self.n_kinds + second]
        must_end = table > 0 and not run[at + 1][2]
        if decision != ASK:
            return TOKEN if must_end and decision == INSIDE else int(decision)
        features = boundary_features(self, run, at, begin, state)
        row = sorted(self.columns[feature_] for feature_ in features if feature_ in self.columns)
        scores = list(self.boundaries.score_one(np.array(row, np.int64)))
        return max(range(TOKEN if must_end else INSIDE, 3), key=lambda k: (scores[k], -k))

    # --- Words ------------------------------------------------------------------------------------------

    def lines(self, before, sentence):
        texts = [
            form + " " * bool(after and k < len(sentence) - 1) for k, (form, after) in enumerate(sentence)
        ]
        yield f"# text = {''.join(texts)}\n"
        number = 1
        for position, (form, after) in enumerate(sentence):
            words = self.words([token for token, _ in sentence], position)
            ids = f"{number}-{number + len(words) - 1}" if words else str(number)
            yield f"{ids}\t{form}" + "\t_" * 7 + f"\t{misc(before if position == 0 else '', after)}\n"
            yield from (f"{number + k}\t{word}" + "\t_" * 8 + "\n" for k, word in enumerate(words))
            number += max(len(words), 1)
        yield "\n"

    def words(self, forms, position):
        form = forms[position]
        small = [self.characters.lower(character) for character in form]
        if not self.rules or len(form.encode()) < 2 or len(form) > 64:
            return []
        rule, ask = -1, False
        if key(small) in self.rule_of["token"]:
            rule, ask = divmod(self.rule_of["token"][key(small)], 2)
        else:
            for length in range(1, min(self.longest_ending, len(form) - 1) + 1):
                rule = self.rule_of["ending"].get(key(small[: -length - 1 : -1]), rule)
        if rule < 0 or (ask and self.splits is not None and not self.is_split(forms, position)):
            return []
        return self.split(form, self.rules[rule])

    def is_split(self, forms, position):
        features = split_features(self.characters, forms, position)
        row = sorted(
            {self.split_columns[feature_] for feature_ in features if feature_ in self.split_columns}
        )
        return self.splits.score_one(np.array(row, np.int64)) > 0.0

    def split(self, form, rule):
        shapes = [self.characters.shapes[self.characters.kind(character)] for character in form]
        capitals = 2 not in shapes and shapes.count(UPPER) > 1
        words = []
        for begin, end, rest, rest_in_capitals in rule:
            begin_, last = (k if k >= 0 else len(form) + 1 + k for k in (begin, end))
            if not 0 <= begin_ <= last <= len(form) or (begin_ == last and not rest):
                return []
            words.append(form[begin_:last] + (rest_in_capitals if capitals else rest))
        return words


def misc(before, after):
    parts = ["SpaceAfter=No"] * (not after)
    parts += [f"SpacesBefore={escape(before)}"] * bool(before)
    parts += [f"SpacesAfter={escape(after)}"] * (after not in ("", " "))
    return "|".join(parts) or "_"


def escape(blanks):
    return "".join(ESCAPES.get(blank, blank) for blank in blanks)


# --- Features -------------------------------------------------------------------------------------------


class State:
    """The decisions so far in the sentence."""

    def __init__(self):
        self.tokens, self.before, self.before_shape = 0, 0, 0
        self.in_quotes, self.brackets = False, 0

    def end_token(self, tokenizer, characters):
        self.tokens += 1
        self.before, self.before_shape = hashes(tokenizer.characters, characters)
        only = characters[0][0] if len(characters) == 1 else ""
        self.in_quotes ^= only == '"'
        self.brackets += {"(": 1, ")": -1}.get(only, 0)


def character_code(character):
    return ord({BLANK: " ", LINE_END: "\n"}.get(character[1], character[0]))


def hashes(characters, characters_):
    """Return hashes of the last characters: in lower case, and their shapes without repetitions."""
    characters_ = characters_[-LONGEST:]
    shapes = [characters.shape(chr(character_code(character)), character[1]) for character in characters_]
    changes = [shape for k, shape in enumerate(shapes) if k == 0 or shape != shapes[k - 1]]
    lower = [characters.lower(chr(character_code(character))) for character in characters_]
    return hash_codes(lower), hash_codes(changes)


def bucket(count):
    return min(count, 64).bit_length()


def word_at(characters, run, at):
    """Return the hash of a word in lower case, that of its shape, its end, and whether it has a capital."""
    if at >= len(run):
        return 0, 0, at, False
    end = at + 1

    def is_word_character(number):
        return characters.shapes[run[number][1]] != OTHER

    while is_word_character(at) and end < len(run) and end - at < LONGEST and is_word_character(end):
        end += 1
    lower, shape = hashes(characters, run[at:end])
    return lower, shape, end, characters.shapes[run[at][1]] == UPPER


def run_end(run, at):
    end = at
    while end - at < LONGEST and end < len(run) and run[end][1] > LINE_END:
        end += 1
    return end


def boundary_features(tokenizer, run, at, begin, state):
    characters, features = tokenizer.characters, []

    def character_at(number):
        return run[number] if 0 <= number < len(run) else NOTHING

    def code(number):
        return 0 if character_at(number) is NOTHING else character_code(character_at(number))

    def kind(number):
        return 255 if number < 0 else character_at(number)[1]

    def add(*values):
        features.append(feature(len(features) + 1, *values))

    for k in range(4):
        add(code(at - k))
    for k in range(1, 5):
        add(code(at + k))
    add(kind(at - 1), kind(at), kind(at + 1))
    add(kind(at - 2) << 8 | kind(at - 1), kind(at), kind(at + 1) << 8 | kind(at + 2))
    add(kind(at + 1), kind(at + 2), kind(at + 3))
    for value in hashes(characters, run[begin : at + 1]):
        add(value)
    add(bucket(at + 1 - begin))
    add(bucket(state.tokens))
    add(state.before)
    add(state.before_shape)
    add(int(state.in_quotes), int(state.brackets > 0))
    run_begin = at
    while run_begin > 0 and at - run_begin < LONGEST and run[run_begin - 1][1] > LINE_END:
        run_begin -= 1
    end = run_end(run, at + 1)
    lower, shape = hashes(characters, run[run_begin:end])
    add(lower)
    add(shape)
    add(hashes(characters, run[at + 1 : end])[0])
    add(hashes(characters, run[at - 2 : at + 1])[0] if at + 1 - run_begin > 2 else 0)
    apart = kind(at + 1) <= LINE_END
    following = at + 1 + apart
    word, word_shape, word_end, capital = word_at(characters, run, following)
    add(word)
    add(word_shape, kind(word_end))
    add(tokenizer.uses.get(word, 0) << 1 | capital, int(apart))
    blank_follows = kind(word_end) <= LINE_END
    second, second_shape, second_end, _ = word_at(characters, run, word_end + blank_follows)
    add(second)
    add(second_shape, kind(second_end))
    return features


def split_features(characters, forms, position):
    result = []

    def add(value):
        result.append(feature(len(result) + 1, value))

    add(hash_codes(ord(character) for character in forms[position]))
    add(key(characters.lower(character) for character in forms[position]))
    for other in (position - 1, position + 1, position - 2, position + 2):
        form = forms[other] if 0 <= other < len(forms) else ""
        small = [characters.lower(character) for character in form]
        add(key(small))
        add(characters.kind(form[0]) if form else 0)
        visible = small[:65]  # the features ignore the rest of a token
        for length in (1, 2, 3):
            add(key(visible[: -length - 1 : -1]))
    return result
