"""One module per endpoint: arguments in, a frame out; what joins endpoints belongs elsewhere."""
