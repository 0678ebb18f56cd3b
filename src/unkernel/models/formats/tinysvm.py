"""Read models of TinySVM: SVMlight's format, but with other numbers of kernels."""

from __future__ import annotations

from unkernel.models.formats._commented import CommentedHeader
from unkernel.models.formats._text import TextLines
from unkernel.models.formats._vectors import Expected
from unkernel.models.formats.svmlight import make_kernel, make_signed_model, read_parameters
from unkernel.models.kernel import KernelModel

_FIRST_LINE = b"TinySVM Version "
_KERNELS = ("linear", "polynomial", "sigmoid", "rbf")


def read(text: TextLines) -> KernelModel:
    """Return the model in a file."""
    version = text.expect_line("first line").removeprefix(_FIRST_LINE)
    header = CommentedHeader(text)
    number = header.read_integer("kernel type", 0)
    if number >= len(_KERNELS):
        raise text.error(
            f"kernel type {number} is not supported (4 is TinySVM's ANOVA kernel); train with types 0 to 3"
        )
    parameters = read_parameters(header)
    # TinySVM uses -s as the factor of its RBF kernel, too, and does not use -g.
    kernel = make_kernel(text, _KERNELS[number], parameters, parameters.s)
    vectors = header.read_integer("number of SVs", 0, max_count=4)
    threshold = header.read_real("threshold b")
    # TinySVM writes a number that is too large by one; other programs may write the correct number.
    expected = Expected(vectors, 1, "the number of SVs", comments=True, max_missing=1)
    origin = {"format": "tinysvm", "version": version.decode("ascii", "backslashreplace")}
    return make_signed_model(text, kernel, threshold, expected, origin)
