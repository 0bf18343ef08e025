"""Ratings, means with intervals, and numbers between random play and the expert."""
