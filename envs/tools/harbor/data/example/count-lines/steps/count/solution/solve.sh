#!/bin/bash
cat /app/logs/*.log | grep -c error > /app/count.txt
