"""One request, safely: token, cache, links, retries, deadlines; frames are made elsewhere."""
