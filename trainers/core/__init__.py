"""The data that algorithms exchange: turn tables, columns, credit, inputs and outputs of losses."""
