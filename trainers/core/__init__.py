"""What algorithms read and say: turn tables, columns, credit, inputs and outputs of losses."""
