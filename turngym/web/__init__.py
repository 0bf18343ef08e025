"""HTML pages that need no other file, and who may ask a server over HTTP."""
