-- All rows of an answer that has more than its `result` shows: a blob with a JSON array.

ALTER TABLE chat_history ADD COLUMN result_rows TEXT;
