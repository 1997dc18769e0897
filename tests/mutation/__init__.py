"""Whether the tests notice it when the code is changed a little."""
