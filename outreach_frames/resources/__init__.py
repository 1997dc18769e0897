"""One module per endpoint: arguments in, a frame out."""
