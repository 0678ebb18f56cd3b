"""KServe predictor: ``python -m unkernel.kserve --model_name income --model_dir /mnt/models``.

The folder holds one ``.uk`` file. Version 1 requests have a list of ``instances`` (records, rows, trees or
texts), version 2 requests the tensors of ``unkernel serve``.
"""

from unkernel.adapters.kserve import UnkernelModel, main

__all__ = ["UnkernelModel", "main"]

if __name__ == "__main__":
    main()
