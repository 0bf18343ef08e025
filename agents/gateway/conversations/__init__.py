"""Conversations of agent programs: one form for all protocols, chat templates, tool calls, and their token ids."""
