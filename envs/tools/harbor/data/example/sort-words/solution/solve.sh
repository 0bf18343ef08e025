#!/bin/bash
tr " " "\n" < /app/words.txt | sort -u > /app/sorted.txt
