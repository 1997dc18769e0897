"""Commands of the shell that are more than a call of a public function, one module each."""
