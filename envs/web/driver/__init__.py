"""A real browser: pages, tabs, frames, and what a person does with them."""
