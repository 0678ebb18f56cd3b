"""Adapters for nltk's trees (or a stand-in's) and for Python's syntax trees."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from reference.preorders import Tree, brackets
from unkernel.data.trees.ast_trees import from_ast
from unkernel.data.trees.nltk_trees import from_nltk
from unkernel.data.trees.preorder import Preorder


def code(text):
    """Return the tree of one statement as text."""
    return brackets(from_ast(ast.parse(text).body[0]))


def expression(text):
    return brackets(from_ast(ast.parse(text, mode="eval").body))


# --- nltk -------------------------------------------------------------------------------------------


def test_an_nltk_tree():
    tree = Tree("S", [Tree("NP", ["dogs"]), Tree("VP", [Tree("VBP", ["bark"]), Tree("ADVP", ["a", "lot"])])])
    assert from_nltk(tree) == Preorder(
        ["S", "NP", "dogs", "VP", "VBP", "bark", "ADVP", "a", "lot"], [2, 1, 0, 2, 1, 0, 2, 0, 0]
    )


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (Tree("NN", []), Preorder(["NN"], [0])),
        (Tree("", [Tree("S", ["x"])]), Preorder(["", "S", "x"], [1, 1, 0])),
        (Tree("NN", [""]), Preorder(["NN", ""], [1, 0])),
        (Tree("NN", ["New York", "(", "犬"]), Preorder(["NN", "New York", "(", "犬"], [3, 0, 0, 0])),
    ],
)
def test_labels_are_not_changed(tree, expected):
    assert from_nltk(tree) == expected


def test_any_iterable_with_a_label_is_accepted():
    class Lazy:
        def label(self):
            return "A"

        def __iter__(self):
            return iter(["b", Tree("C", ["d"])])

    assert brackets(from_nltk(Lazy())) == "(A b (C d))"


def test_subtrees_can_occur_twice_and_are_not_changed():
    twice = Tree("NP", ["it"])
    tree = Tree("S", [twice, Tree("VP", [twice])])
    assert brackets(from_nltk(tree)) == "(S (NP it) (VP (NP it)))"
    assert tree == [["it"], [["it"]]]


def test_an_nltk_tree_that_contains_itself():
    inner = Tree("VP", [])
    inner.append(Tree("S", [inner]))
    with pytest.raises(ValueError, match="contains itself"):
        from_nltk(Tree("S", [inner]))
    shared = Tree("NP", ["dogs"])  # shared, but not below itself
    assert from_nltk(Tree("S", [shared, shared])).arities == [2, 1, 0, 1, 0]


def test_deep_and_wide_nltk_trees():
    tree = Tree("X", ["x"])
    for _ in range(10_000):
        tree = Tree("X", [tree])
    assert from_nltk(tree).arities == [1] * 10_001 + [0]
    assert from_nltk(Tree("X", ["x"] * 100_000)).arities == [100_000] + [0] * 100_000


@pytest.mark.parametrize(
    ("children", "message"),
    [
        ([("dog", "NN")], r"got tuple \('dog', 'NN'\) below the node 'NP'; .*Tree\('NN', \['dog'\]\)"),
        ([5], r"a leaf must be a string, got int 5 below the node 'NP'; give its text"),
        ([None], "got NoneType None"),
        ([b"dog"], "got bytes b'dog'"),
        ([["dog"]], "got list"),
        ([("x" * 200,)], r"x\.\.\. below"),
    ],
)
def test_leaves_that_are_not_strings_are_refused(children, message):
    with pytest.raises(ValueError, match=message):
        from_nltk(Tree("S", [Tree("NP", children)]))


@pytest.mark.parametrize("label", [None, 3, ("NP", 1)])
def test_labels_that_are_not_strings_are_refused(label):
    with pytest.raises(ValueError, match="the label of a tree must be a string, got"):
        from_nltk(Tree("S", [Tree(label, ["x"])]))


@pytest.mark.parametrize("value", ["(S (NP x))", None, ["S", "x"], 5])
def test_objects_that_are_not_nltk_trees_are_refused(value):
    with pytest.raises(TypeError, match=r"expected an nltk\.Tree, got"):
        from_nltk(value)
    if isinstance(value, str):
        with pytest.raises(TypeError, match=r"Tree\.fromstring"):
            from_nltk(value)


def test_nltk_itself():
    nltk = pytest.importorskip("nltk")
    text = "(S (NP (DT the) (NN dog)) (VP barks) (. !))"
    for kind in (nltk.Tree, nltk.ParentedTree, nltk.ImmutableTree):
        assert brackets(from_nltk(kind.fromstring(text))) == text
    with pytest.raises(ValueError, match=r"Tree\('NN', \['dog'\]\)"):
        from_nltk(nltk.Tree("S", [("dog", "NN")]))


# --- Python -----------------------------------------------------------------------------------------


def test_the_example_of_the_docstring():
    assert code("def area(self, r=1): self.a = PI * r") == (
        "(FunctionDef (name: area) "
        "(arguments (args: (arg (arg: self)) (arg (arg: r))) (defaults: (Constant (int: 1)))) "
        "(body: (Assign (targets: (Attribute (Name (id: self)) (attr: a) Store)) "
        "(BinOp (Name (id: PI)) Mult (Name (id: r))))))"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "(Expr (Name (id: x)))"),
        ("x = y", "(Assign (targets: (Name (id: x) Store)) (Name (id: y)))"),
        ("del x", "(Delete (targets: (Name (id: x) Del)))"),
        ("pass", "Pass"),
        ("return", "(Return -)"),
        ("global a, b", "(Global (names: a b))"),
        ("import a.b as c", "(Import (names: (alias (name: a.b) (asname: c))))"),
        ("from ..a import b", "(ImportFrom (module: a) (names: (alias (name: b))) (level: 2))"),
        ("from a import b", "(ImportFrom (module: a) (names: (alias (name: b))))"),
        ("x: int", "(AnnAssign (Name (id: x) Store) (Name (id: int)))"),
        ("(x): int", "(AnnAssign (Name (id: x) Store) (Name (id: int)) (simple: 0))"),
        (
            "if a: b\nelse: c",
            "(If (Name (id: a)) (body: (Expr (Name (id: b)))) (orelse: (Expr (Name (id: c)))))",
        ),
        ("raise E from c", "(Raise (Name (id: E)) (Name (id: c)))"),
        ("def f(): pass", "(FunctionDef (name: f) (arguments -) (body: Pass))"),
    ],
)
def test_statements(text, expected):
    assert code(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "(List -)"),
        ("()", "(Tuple -)"),
        ("f()", "(Call (Name (id: f)))"),
        ("f(a, k=b, **c)", "(Call (Name (id: f)) (args: (Name (id: a))) "
         "(keywords: (keyword (arg: k) (Name (id: b))) (keyword (Name (id: c)))))"),
        ("x[1:]", "(Subscript (Name (id: x)) (Slice (lower: (Constant (int: 1)))))"),
        ("x[:1]", "(Subscript (Name (id: x)) (Slice (upper: (Constant (int: 1)))))"),
        ("x[::1]", "(Subscript (Name (id: x)) (Slice (step: (Constant (int: 1)))))"),
        ("x[:]", "(Subscript (Name (id: x)) (Slice -))"),
        ("{**a, b: c}", "(Dict (keys: - (Name (id: b))) (values: (Name (id: a)) (Name (id: c))))"),
        ("1 < b is not 2", "(Compare (Constant (int: 1)) (ops: Lt IsNot) "
         "(comparators: (Name (id: b)) (Constant (int: 2))))"),
        ("not a", "(UnaryOp Not (Name (id: a)))"),
        ("lambda *a: a", "(Lambda (arguments (vararg: (arg (arg: a)))) (Name (id: a)))"),
        ("lambda **a: a", "(Lambda (arguments (kwarg: (arg (arg: a)))) (Name (id: a)))"),
        ("lambda *, a, b=c: a", "(Lambda (arguments (kwonlyargs: (arg (arg: a)) (arg (arg: b))) "
         "(kw_defaults: - (Name (id: c)))) (Name (id: a)))"),
        ("f'{a!r}'", "(JoinedStr (values: (FormattedValue (Name (id: a)) (conversion: 114))))"),
        ("[a for a in b]", "(ListComp (Name (id: a)) "
         "(generators: (comprehension (Name (id: a) Store) (Name (id: b)))))"),
    ],
)  # fmt: skip
def test_expressions(text, expected):
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'utf-8'", "(str: 'utf-8')"),
        ("u'utf-8'", "(str: 'utf-8')"),
        ('"it\'s"', '(str: "it\'s")'),
        ("'(a b)'", "(str: '(a b)')"),
        ("'" + "x" * 22 + "'", "(str: '" + "x" * 22 + "')"),
        ("'" + "x" * 23 + "'", "(str: ...)"),
        (r"'\n\n\n\n\n\n\n\n\n\n\n\n'", "(str: ...)"),
        (r"'\ud800'", r"(str: '\ud800')"),
        ("b'ab'", "(bytes: b'ab')"),
        ("12", "(int: 12)"),
        ("18446744073709551615", "(int: 18446744073709551615)"),
        ("18446744073709551616", "(int: ...)"),
        ("0x" + "f" * 10_000, "(int: ...)"),
        ("1.50", "(float: 1.5)"),
        ("1e999", "(float: inf)"),
        ("2j", "(complex: 2j)"),
        ("True", "(bool: True)"),
        ("None", "(NoneType: None)"),
        ("...", "(ellipsis: Ellipsis)"),
    ],
)
def test_constants(text, expected):
    assert expression(text) == f"(Constant {expected})"


def test_a_constant_made_by_hand_is_not_spelt_out():
    nested = ()
    for _ in range(10_000):
        nested = (nested,)
    assert brackets(from_ast(ast.Constant(value=nested))) == "(Constant (tuple: ...))"


def test_patterns():
    result = code("match a:\n case None | {'b': 1, **c}: pass\n case P(x=1, y=_): pass\n case [*_]: pass")
    assert result == (
        "(Match (Name (id: a)) (cases: (match_case (MatchOr (patterns: "
        "(MatchSingleton (NoneType: None)) (MatchMapping (keys: (Constant (str: 'b'))) "
        "(patterns: (MatchValue (Constant (int: 1)))) (rest: c)))) "
        "(body: Pass)) "
        "(match_case (MatchClass (Name (id: P)) (kwd_attrs: x y) "
        "(kwd_patterns: (MatchValue (Constant (int: 1))) (MatchAs -))) (body: Pass)) "
        "(match_case (MatchSequence (patterns: (MatchStar -))) (body: Pass))))"
    )


def test_async_and_type_comments():
    tree = ast.parse("async def f():\n return [a async for a in b]", type_comments=True).body[0]
    assert "(is_async: 1)" in brackets(from_ast(tree))
    with_comment = ast.parse("x = []  # type: list\n", type_comments=True)
    assert from_ast(with_comment) == from_ast(ast.parse("x = []"))


def test_positions_and_layout_of_code_do_not_change_trees():
    assert from_ast(ast.parse("\n\nif (a):  # why\n      b()")) == from_ast(ast.parse("if a: b()"))


def test_modules_expressions_and_leaf_nodes_become_trees():
    assert brackets(from_ast(ast.parse(""))) == "(Module -)"
    assert brackets(from_ast(ast.parse("x", mode="eval"))) == "(Expression (Name (id: x)))"
    assert brackets(from_ast(ast.Load())) == "Load"


def test_fields_that_are_missing_are_empty():
    assert brackets(from_ast(ast.Return())) == "(Return -)"
    assert brackets(from_ast(ast.BinOp(left=ast.Name("x"), op=ast.Add()))) == "(BinOp (Name (id: x)) Add)"


def test_deep_code():
    deep = ast.Name("x", ast.Load())
    for _ in range(10_000):
        deep = ast.UnaryOp(ast.Not(), deep)
    tree = from_ast(deep)
    assert tree.labels == ["UnaryOp", "Not"] * 10_000 + ["Name", "id:", "x"]
    assert tree.arities == [2, 0] * 10_000 + [1, 1, 0]


@pytest.mark.parametrize("value", [object(), {"x": 1}, [["x"]], 1.5])
def test_fields_that_hold_something_else(value):
    with pytest.raises(ValueError, match="the field 'id' of a Name holds"):
        from_ast(ast.Name(id=value))


@pytest.mark.parametrize("value", ["x = 1", None, [ast.Pass()]])
def test_objects_that_are_not_syntax_trees_are_refused(value):
    with pytest.raises(TypeError, match=r"expected an ast node, got .*ast\.parse"):
        from_ast(value)


def library(package):
    folder = Path(importlib.util.find_spec(package).origin).parent
    return [ast.parse(file.read_bytes()) for file in sorted(folder.glob("*.py"))]


def spell_constants_as_trees_do(node):
    """Shorten long constants like the adapter, so that they do not count as differences."""
    for constant in ast.walk(node):
        if isinstance(constant, ast.Constant):
            constant.value, constant.kind = brackets(from_ast(constant)), None


def test_different_code_gives_different_trees_except_for_long_constants():
    meaning = {}
    for module in library("json") + library("email")[:12]:
        statements = [node for node in ast.walk(module) if isinstance(node, ast.stmt)]
        trees = [from_ast(node) for node in statements]
        spell_constants_as_trees_do(module)
        for node, tree in zip(statements, trees, strict=True):
            dumped = ast.dump(node)
            assert meaning.setdefault((*tree.labels, *tree.arities), dumped) == dumped
    assert len(meaning) > 3000


def productions(tree):
    """Return for every inner node its label and its children's labels, with leaves marked."""
    stack = []
    for label, arity in zip(reversed(tree.labels), reversed(tree.arities), strict=True):
        children = [stack.pop() for _ in range(arity)]
        if children:
            labels, leaves = zip(*children, strict=True)
            yield (label, *labels), leaves
        stack.append((label, not arity))


def test_equal_labels_are_always_leaves_or_always_inner_nodes():
    leaves_of_production = {}
    for module in library("json") + library("email"):
        for production, leaves in productions(from_ast(module)):
            assert leaves_of_production.setdefault(production, leaves) == leaves
