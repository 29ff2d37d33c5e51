"""A witness and the way to one, over HTTP (K3)."""
