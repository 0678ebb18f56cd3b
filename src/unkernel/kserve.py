"""KServe predictor: ``python -m unkernel.kserve --model_name income --model_dir /mnt/models``.

The folder must contain one ``.uk`` file. Requests of version 1 have a list of ``instances`` (records, rows,
trees or texts). Requests of version 2 have the same tensors as for ``unkernel serve``.
"""

from unkernel.adapters.kserve import UnkernelModel, main

__all__ = ["UnkernelModel", "main"]

if __name__ == "__main__":
    main()
