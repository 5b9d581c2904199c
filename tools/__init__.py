"""Programs of the development: not part of the installed library."""
