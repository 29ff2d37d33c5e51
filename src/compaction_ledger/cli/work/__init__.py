"""`work`: in this process or in several, with a page on its health."""
