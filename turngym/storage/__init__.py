"""Files and folders: whole or not at all, known by their content, read within bounds."""
