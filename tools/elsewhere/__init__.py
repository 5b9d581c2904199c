"""The same bits elsewhere: the C core built for other compilers, C libraries, processors and byte orders.

``python -m tools.elsewhere`` builds every target, plays the frozen vectors on each and compares digests of all outputs.
"""
