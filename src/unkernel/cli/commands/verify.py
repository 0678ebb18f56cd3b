"""``unkernel verify``: compare model files with the digests stored in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unkernel import load
from unkernel._loading import check_loaded
from unkernel.cli.exit_codes import BAD_INPUT, DAMAGED_MODEL
from unkernel.cli.options import shared_options
from unkernel.cli.terminal.console import flatten, print_json, results
from unkernel.cli.terminal.progress import Display
from unkernel.errors import FormatError
from unkernel.models import container

ModelFiles = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Model files of unkernel.", show_default=False)
]
PublicKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Ed25519 public key in PEM format; also check the signature in FILE.sig.",
        show_default="none",
    ),
]


def verify(
    files: ModelFiles,
    *,
    public_key: PublicKey = None,
    json: shared_options.Json = False,
    quiet: shared_options.Quiet = False,
) -> None:
    """Check every byte of model files against the digests inside.

    The header and each array are compared with their digests, and all arrays
    together with their SHA-256. Then the model is loaded. Compiled tables must
    give the same scores as the model stored with them, on random rows. The
    exit code is 1 if a file is damaged or has no digests (files of the first
    versions), and 2 if a file cannot be read.

    Digests detect damage, but not malice: whoever changes a file on purpose
    can change its digests, too. Sign files that you send to others, and check
    the signature with --public-key.

    \b
    [dim]$[/dim] unkernel verify model.uk parser.uk
    [dim]$[/dim] openssl pkeyutl -sign -rawin -inkey private.pem -in model.uk -out model.uk.sig
    [dim]$[/dim] unkernel verify model.uk --public-key public.pem
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    key = None if public_key is None else read_key(public_key)
    verified_files = []
    with Display(quiet=quiet or json) as display:
        for path in files:
            with display.show_work(f"verifying {path.name}"):
                verified_files.append(_verify_file(path, key))
    if json:
        print_json({"files": verified_files})
    elif not quiet:
        for result in verified_files:
            results().print(flatten(_format_line(result)), markup=False)
    if any(result["problem"] for result in verified_files):
        raise typer.Exit(DAMAGED_MODEL if any(result["damaged"] for result in verified_files) else BAD_INPUT)


def _verify_file(path: Path, key: Any) -> dict[str, Any]:
    """Verify a file; return the result for JSON."""
    result: dict[str, Any] = {
        "file": str(path),
        "problem": None,
        "damaged": False,
        "kind": None,
        "arrays": None,
        "bytes": None,
    }
    try:
        identity = _get_file_identity(path)
        opened = container.open_file(path, verify=True)
        result |= {
            "kind": opened.kind,
            "arrays": len(opened.arrays),
            "bytes": path.stat().st_size,
            "sha256": opened.sha256,
        }
        if key is not None:
            check_signature(path, key)
            result["signed"] = True
        if opened.digests is None:
            result["problem"] = "has no digests: load it and save it again"
        else:
            check_loaded(load(path, verify=False), str(path))
        # If the file was replaced meanwhile, the digests and the signature belong to different files.
        if _get_file_identity(path) != identity:
            result["problem"] = "was replaced while it was verified: verify it again"
    except FormatError as error:
        result |= {"problem": error.reason, "damaged": True}
    except OSError as error:
        result["problem"] = f"cannot be read: {error.strerror or error}"
    # Problems found after opening the file, such as missing digests, also count as damage.
    result["damaged"] |= result["problem"] is not None and result["kind"] is not None
    return result


def _get_file_identity(path: Path) -> tuple[int, ...]:
    """Return numbers that change when a file is replaced by another file of the same name."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _format_line(result: dict[str, Any]) -> str:
    if result["problem"]:
        return f"{result['file']}: {result['problem']}"
    signed = ", signature matches" if result.get("signed") else ""
    return f"{result['file']}: undamaged, {result['arrays']} arrays, {result['bytes']:,} bytes{signed}"


# --- Signatures ---------------------------------------------------------------------------------------


def read_key(path: Path) -> Any:
    """Read an Ed25519 public key."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise ValueError('--public-key needs cryptography: pip install "unkernel[sign]"') from None
    try:
        key = load_pem_public_key(path.read_bytes())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{path}: not an Ed25519 public key in PEM format")
    return key


def check_signature(path: Path, key: Any) -> None:
    """Raise ``FormatError`` unless FILE.sig contains a valid signature of FILE."""
    from cryptography.exceptions import InvalidSignature

    signature = path.with_name(path.name + ".sig")
    if not signature.exists():
        raise FormatError(str(path), 0, 0, f"is not signed: there is no {signature.name}")
    try:
        key.verify(signature.read_bytes(), path.read_bytes())
    except InvalidSignature:
        raise FormatError(str(path), 0, 0, f"does not match its signature {signature.name}") from None
