"""What each block format costs on real weights: bits per weight against error."""
