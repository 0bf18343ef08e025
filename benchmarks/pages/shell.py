"""What all pages share: one HTML file with both themes and a policy against everything from outside.

>>> "<h1>Results</h1>" in page("Results")
True
"""

from turngym.page import page

__all__ = ["page"]
