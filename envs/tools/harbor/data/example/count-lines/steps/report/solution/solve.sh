#!/bin/bash
echo "$(cat /app/count.txt) errors" > /app/report.txt
