"""One answer everywhere: a model gives a record the same answer, to the last bit, by every way of asking.

``subjects`` and ``values`` draw models and records; ``ways``, ``requests`` and ``commands`` ask; ``limits``
lists what a format cannot express; ``comparison`` compares the answers with those of ``predict_one``.
"""
