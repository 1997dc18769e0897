"""Commands that do more than call a public function, one module each."""
