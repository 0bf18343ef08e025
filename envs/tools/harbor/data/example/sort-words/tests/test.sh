#!/bin/bash
reward=0
if [ "$(cat /app/sorted.txt 2> /dev/null)" = "$(printf 'apple\nfig\npear\nplum')" ]; then reward=1; fi
echo $reward > /logs/verifier/reward.txt
