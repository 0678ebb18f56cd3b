"""Objects that are saved as ``.uk`` files."""

from __future__ import annotations

import os
from typing import Any, Self

from numpy.typing import NDArray

from unkernel.models import container


class SavedObject:
    """Base class of objects that write ``.uk`` files."""

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the content of a file.

        Returns
        -------
        kind : str
            Kind of the file.
        arrays : dict of str to ndarray
            The arrays of the model and of its tables.
        settings : dict
            Everything else, ready for JSON.
        """
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.uk`` file, which :func:`unkernel.load` reads.

        An existing file is replaced in one step, or left unchanged if writing fails.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        container.write(path, *self.to_container())


class RestoredObject:
    """Base class of objects that are made from the content of ``.uk`` files."""

    @classmethod
    def from_container(cls, name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Self:
        """Make an object of this class from the arrays and settings of a file, and check it.

        Parameters
        ----------
        name : str
            Name of the file in error messages.
        arrays : dict of str to ndarray
            The arrays. Arrays with unknown names are ignored.
        settings : dict
            The settings.

        Returns
        -------
        object
            An object of this class.

        Raises
        ------
        FormatError
            If the arrays and settings are not those of an object of this class.
        """
        raise NotImplementedError
