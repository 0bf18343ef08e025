#!/bin/bash
[ "$(tr -d '[:space:]' < /app/count.txt 2> /dev/null)" = 3 ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
