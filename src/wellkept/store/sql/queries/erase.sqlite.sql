-- fragment: in_numbers
IN (SELECT value FROM json_each(:numbers))

-- fragment: in_names
IN (SELECT value FROM json_each(:names))
