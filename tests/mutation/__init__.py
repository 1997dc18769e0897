"""Check that the tests fail after small changes of the code."""
