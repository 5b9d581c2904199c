"""The block formats beside other people's software: the ``gguf`` package and ggml's own C."""
