"""How well recall finds what it should on public data sets, which are given by path: they are not ours to ship."""
