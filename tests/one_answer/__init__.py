"""Every interface gives the same answer to a record, to the last bit.

``subjects`` and ``values`` draw models and records; ``ways``, ``requests`` and ``commands`` use the
interfaces; ``limits`` lists values that a format cannot express; ``comparison`` compares the answers with
those of ``predict_one``.
"""
