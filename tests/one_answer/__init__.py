"""One answer everywhere: a model gives a record the same answer, to the last bit, by every interface.

``subjects`` and ``values`` draw models and records; ``ways``, ``requests`` and ``commands`` use the
interfaces; ``limits`` lists values that a format cannot express; ``comparison`` compares the answers with
those of ``predict_one``.
"""
