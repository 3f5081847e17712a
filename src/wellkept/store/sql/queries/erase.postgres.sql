-- fragment: in_numbers
= ANY(:numbers)

-- fragment: in_names
= ANY(:names::text[])
