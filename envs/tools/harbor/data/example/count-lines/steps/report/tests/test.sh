#!/bin/bash
[ "$(cat /app/report.txt 2> /dev/null)" = "3 errors" ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
