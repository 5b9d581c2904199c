"""Every f32 pattern into every small format and into i32, every code of the small formats back, on every level.

``python -m tools.exhaustive`` compares the installed ``fucina.fast`` with judges that share no code with it.
"""
