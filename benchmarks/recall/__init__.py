"""Quality of recall on data sets that are given by path."""
