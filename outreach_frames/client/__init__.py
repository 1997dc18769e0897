"""Send single requests safely: token, cache, links, retries and deadlines."""
